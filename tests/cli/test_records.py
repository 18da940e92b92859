"""`losse records`: what it lists, sorts, finds wrong, drops and exports."""

import csv
import io
import json
from dataclasses import replace

import pytest

pytest.importorskip("tyro")

from losse.cli import main
from losse.runs.provenance import Environment
from losse.runs.record import Record
from losse.runs.store import Store

CLEAN = Environment({"python": "3.11"}, "0123", "a processor")
DIRTY = Environment({"python": "3.11"}, "0123-dirty", "a processor", patch="abcd")


def make(method, seed, environment=CLEAN, **settings):
    return Record(
        experiment="toy", method=method, setting="x", seed=seed, score=seed / 2, settings=settings,
        environment=environment,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "toy")
    store.add([make("nn", 1, rate=0.1), make("losse", 0, DIRTY, net=[1, 2])])
    store.add([make("nn", 0, rate=0.1), make("nn", 0, rate=0.2)], "sweep")
    return store


def records(capsys, *arguments):
    main(["records", *map(str, arguments)])
    return capsys.readouterr().out


def test_list_counts(store, capsys):
    lines = records(capsys, "list", store.folder.parent).splitlines()
    assert lines[2].startswith(f"| {store.folder} | runs | | 2 | 1 | 2 | 1 |")
    assert lines[3].startswith(f"| {store.folder} | sweep | | 2 | 1 | 1 | 0 |")
    assert "| runs | losse | 1 |" in records(capsys, "list", store.folder, "--methods")


def test_tidy_sorts(store, capsys):
    records(capsys, "tidy", store.folder)
    lines = [json.loads(line) for _, line in store.lines()]
    assert [line["method"] for line in lines] == ["losse", "nn"]


def test_check_finds_what_is_wrong(store, capsys):
    with pytest.raises(SystemExit) as stop:
        records(capsys, "check", store.folder)
    assert stop.value.code == 1
    assert "runs.jsonl: 1 records of 0123-dirty, without its patch" in capsys.readouterr().out
    store.keep_patch("the difference", "abcd")
    assert records(capsys, "check", store.folder) == "All records are well.\n"

    store.add([make("nn", 1, rate=0.1)])
    with store.path("sweep").open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(SystemExit):
        records(capsys, "check", store.folder)
    out = capsys.readouterr().out
    assert "runs.jsonl, line 3" in out
    assert "occurs twice" in out
    assert "sweep.jsonl, line 3: not a record" in out


def test_drop_removes_what_is_meant(store, capsys):
    assert "runs.jsonl: 1 records dropped" in records(capsys, "drop", store.folder, "--dirty")
    assert [record.method for record in store.read()] == ["nn"]
    records(capsys, "drop", store.folder, "--methods", "nn")
    assert store.read() == store.read("sweep") == []


def test_drop_of_some_settings_can_spare_the_sweep(store, capsys):
    store.add([replace(make("nn", 0), setting=100)])
    records(capsys, "drop", store.folder, "--settings", "100")
    assert {record.setting for record in store.read()} == {"x"}
    records(capsys, "drop", store.folder, "--methods", "nn", "--settings", "x", "--final")
    assert [record.method for record in store.read()] == ["losse"]
    assert len(store.read("sweep")) == 2


def test_export_is_a_table(store, tmp_path, capsys):
    out = records(capsys, "export", store.folder)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["file"], row["method"], row["seed"]) for row in rows] == [
        ("runs", "losse", "0"), ("runs", "nn", "1"), ("sweep", "nn", "0"), ("sweep", "nn", "0"),
    ]  # fmt: skip
    assert rows[0]["settings.net"] == "[1, 2]"
    assert rows[0]["revision"] == "0123-dirty"
    assert rows[1]["settings.rate"] == "0.1"
    records(capsys, "export", store.folder, "--out", tmp_path / "all.csv")
    assert (tmp_path / "all.csv").read_text() == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["list", "nowhere"], "no records in nowhere"), (["drop", "toy"], "name --methods")],
)
def test_nonsense_is_refused_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["records", *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
