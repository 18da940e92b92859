"""Records in files: nothing is lost, nothing is half written, and all of it is strict JSON."""

import json
import math
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest

from losse.runs.provenance import Environment
from losse.runs.record import Record
from losse.runs.store import Store, read_records, write_record
from losse.storage.jsonfile import write_json

KEYS = {"experiment", "method", "setting", "seed", "score", "curve", "settings", "seconds"}
OTHER = Environment({"python": "3.0"}, "0123abc", "another processor")


def make(**changes):
    values = {"experiment": "toy", "method": "losse", "setting": 0.5, "seed": 1, "score": 0.25}
    return Record(**(values | changes))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "toy")


def test_a_record_survives_writing_and_reading(store):
    record = make(curve=[(1.0, 2.0), (2.0, 1.0)], settings={"n": 3}, details={"note": "x\ny"})
    store.add([record])
    assert store.read() == [record]
    assert store.read("sweep") == []


def test_a_line_has_all_keys_and_is_strict_json(store):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    store.add([make(score=np.float64("nan"), curve=np.array([[1.0, np.inf]]))])
    ((number, line),) = store.lines()
    assert number == 1
    assert json.loads(line, parse_constant=refuse).keys() >= KEYS
    (record,) = store.read()
    assert math.isnan(record.score)
    assert math.isnan(record.curve[0][1])


def test_an_environment_is_written_once_and_referred_to(store):
    store.add([make(seed=k) for k in range(3)])
    store.add([make(seed=3), make(seed=4, environment=OTHER)])
    table = json.loads((store.folder / "environments.json").read_text())
    assert set(table) == {make().environment.id, OTHER.id}
    assert table[OTHER.id]["revision"] == "0123abc"
    assert [json.loads(line)["environment"] for _, line in store.lines()][-1] == OTHER.id
    assert store.read()[-1].environment == OTHER


def test_the_options_belong_to_the_key_whatever_their_order():
    one = make(settings={"rate": 0.1, "size": (1, 2)})
    assert one.key == make(settings={"size": [1, 2], "rate": 0.1}, score=9.0).key
    others = [make(settings={"rate": 0.2, "size": (1, 2)}), make(seed=2), make(method="nn"), make()]
    assert len({one.key, *(other.key for other in others)}) == 5


def test_a_torn_last_line_counts_for_nothing_and_is_cut(store):
    store.add([make(seed=1), make(seed=2)])
    whole = store.path().read_bytes()
    for cut in (1, 40, len(whole) // 2 - 1):  # the last without its end, or without most of it
        store.path().write_bytes(whole[:-cut])
        assert [record.seed for record in store.read()] == [1]
        store.add([make(seed=3)])
        assert [record.seed for record in store.read()] == [1, 3]
    store.path().write_bytes(b'{"experiment"')  # a first line that was never finished
    store.add([make(seed=4)])
    assert [record.seed for record in store.read()] == [4]


def test_processes_that_write_at_once_lose_nothing(store):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(store.folder, k)) for k in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [record.seed for record in store.read()] == list(range(100))


def _write(folder, first):
    for seed in range(first, 100, 2):
        Store(folder).add([make(seed=seed)])


def test_a_record_can_take_the_place_of_earlier_ones(tmp_path):
    for seed in (1, 2):
        write_record(make(seed=seed, settings={"n": 1}), tmp_path)
    path = write_record(make(seed=1, score=2.0, settings={"n": 2}), tmp_path)
    assert [(r.seed, r.score, r.settings["n"]) for r in read_records(tmp_path)] == [
        (1, 2.0, 2),
        (2, 0.25, 1),
    ]
    assert path == tmp_path / "runs.jsonl"


def test_records_come_sorted_and_tidying_sorts_the_file(store):
    settings = (0.9, "b", 0.1)
    mixed = [make(setting=setting, seed=seed) for setting in settings for seed in (10, 9)]
    mixed.append(replace(mixed[0], score=5.0))  # the same run once more
    store.add(mixed)
    store.add([make(method="a", environment=OTHER)])
    store.drop(lambda record: record.method == "a")
    order = [(0.1, 9), (0.1, 10), (0.9, 9), (0.9, 10), (0.9, 10), ("b", 9), ("b", 10)]
    assert [(record.setting, record.seed) for record in store.read()] == order
    store.tidy()
    assert [(record.setting, record.seed) for record in store.read()] == order[:4] + order[5:]
    assert [r.score for r in store.read() if (r.setting, r.seed) == (0.9, 10)] == [5.0]
    lines = [json.loads(line) for _, line in store.lines()]
    assert [(line["setting"], line["seed"]) for line in lines] == order[:4] + order[5:]
    assert OTHER.id not in store.environments()
    assert not store.path("sweep").exists()


def test_dropping_counts_and_keeps_the_rest(store):
    store.add([make(seed=seed) for seed in range(4)], "sweep")
    assert store.drop(lambda record: record.seed < 3, "sweep") == 3
    assert [record.seed for record in store.read("sweep")] == [3]
    assert store.drop(lambda record: True) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "{", "line 2: not a record"),
        (lambda text: "[]", "line 2: not a record"),
        (lambda text: text.replace('"seed": 1', '"seed": "1"'), "seed is '1'"),
        (lambda text: text.replace('"seed": 1', '"sead": 1'), "missing or unknown: sead, seed"),
        (lambda text: text.replace('"score": 0.25', '"score": true'), "score is True"),
        (lambda text: text.replace(make().environment.id, "ffff"), "'ffff' is not in environments"),
    ],
)
def test_a_damaged_line_is_named(store, change, message):
    store.add([make(), make()])
    first, second, _ = store.path().read_text().split("\n")
    store.path().write_text(f"{first}\n{change(second)}\n")
    with pytest.raises(ValueError, match=message):
        store.read()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_json(tmp_path / "x.json", {"a": 1})
    for value in ({"a": object()}, {"a": 1j}):
        with pytest.raises(TypeError):
            write_json(path, value)
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_that_is_no_json_writes_nothing(store):
    store.add([make()])
    before = store.path().read_bytes()
    with pytest.raises(TypeError):
        store.add([make(seed=2), make(details={"a": object()})])
    assert store.path().read_bytes() == before


def test_an_interrupted_rewrite_leaves_the_old_file(store, monkeypatch):
    store.add([make(seed=2), make(seed=1)])
    before = store.path().read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("losse.storage.atomic.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.tidy()
    assert store.path().read_bytes() == before
