"""The watched folders: what they hold, what has changed, and what cannot be read."""

import json
import time

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("matplotlib")

from losse.runs.journal import LIVE, PROBE, SWEEP, thinned
from losse.runs.store import Store
from losse.watch.watched import Watched
from tests.watch import folders


def watched(*roots):
    made = Watched(roots)
    made.refresh()
    return made


def only_folder(made):
    (summary,) = made.overview()["folders"]
    _, body = made.folder(summary["id"])
    return json.loads(body)


def test_an_empty_folder_has_no_runs(tmp_path):
    assert watched(tmp_path).overview()["folders"] == []


def test_records_have_their_curves_errors_and_times(tmp_path):
    Store(tmp_path).add([folders.record(seed) for seed in range(3)])
    runs = only_folder(watched(tmp_path))["runs"]
    assert [run["seed"] for run in runs] == [0, 1, 2]
    for run in runs:
        assert len(run["curve"][0]) == len(run["curve"][1]) == len(run["model_error"][0]) == 20
        assert run["model_share"] == pytest.approx(3 / 12.5)
        assert run["update_ms"] == pytest.approx(1.0)  # 2 s for 2000 steps
        assert run["state"] == "finished"


def test_a_run_that_goes_on_is_shown_before_it_has_a_record(tmp_path):
    journal = folders.going_on(tmp_path, steps=500)
    made = watched(tmp_path)
    (run,) = only_folder(made)["runs"]
    assert (run["state"], run["steps"], run["of"]) == ("running", 500, 2000)
    assert not made.refresh()
    folders.tell(journal, 700)
    assert made.refresh()
    (run,) = only_folder(made)["runs"]
    assert run["curve"][0][-1] == 700


def test_a_record_takes_the_place_of_its_journal(tmp_path):
    journal = folders.going_on(tmp_path, seed=1, steps=2000, probe=folders.probe_of(50))
    journal.__exit__(None, None, None)
    Store(tmp_path).add([folders.record(1)])
    (run,) = only_folder(watched(tmp_path))["runs"]
    assert run["score"] == pytest.approx(folders.record(1).score)
    assert (run["state"], run["has_probe"]) == ("finished", True)


def test_a_run_that_fails_says_why(tmp_path):
    journal = folders.going_on(tmp_path)
    error = ValueError("the pole is lost")
    journal.__exit__(ValueError, error, None)
    (run,) = only_folder(watched(tmp_path))["runs"]
    assert (run["state"], run["reason"]) == ("failed", "ValueError: the pole is lost")


def test_a_sweep_says_how_far_it_is_and_what_failed(tmp_path):
    folders.failing_sweep(tmp_path)
    sweep = only_folder(watched(tmp_path))["sweep"]
    assert (sweep["done"], sweep["total"], sweep["state"]) == (1, 4, "running")
    assert sweep["failures"][0]["reason"] == "ValueError: the rate is negative"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("runs.jsonl", "{not json\n", "runs.jsonl, line 2: not a record"),
        ("runs.jsonl", '{"experiment": "x"}\n', "fields missing"),
        ("runs.jsonl", "\xff\n", "line 2"),
        (f"losse_seed5/{LIVE}", "[]", "names no experiment"),
        (f"losse_seed5/{LIVE}", '{"experiment": "x"}', "KeyError"),
        (SWEEP, "", "not a journal"),
        ("environments.json", "[", "not a table of environments"),
    ],
)
def test_what_is_broken_is_named_and_the_rest_is_shown(tmp_path, name, text, said):
    store = Store(tmp_path)
    store.add([folders.record()])
    made = watched(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with (tmp_path / name).open("a" if name == "runs.jsonl" else "w", encoding="latin-1") as file:
        file.write(text)
    made.refresh()
    told = only_folder(made)
    assert [run["method"] for run in told["runs"]] == ["losse"]
    assert said in told["problems"][0]


def test_a_line_without_an_end_waits(tmp_path):
    store = Store(tmp_path)
    store.add([folders.record()])
    made = watched(tmp_path)
    line = json.dumps(json.loads(store.path().read_text()) | {"seed": 9})
    with store.path().open("a") as file:
        file.write(line[:50])
        file.flush()
        made.refresh()
        assert len(only_folder(made)["runs"]) == 1
        file.write(line[50:] + "\n")
    made.refresh()
    assert [run["seed"] for run in only_folder(made)["runs"]] == [0, 9]
    assert only_folder(made)["problems"] == []


def test_a_file_that_was_rewritten_is_read_anew(tmp_path):
    store = Store(tmp_path)
    store.add([folders.record(seed) for seed in range(3)])
    made = watched(tmp_path)
    store.drop(lambda record: record.seed == 1)
    made.refresh()
    assert [run["seed"] for run in only_folder(made)["runs"]] == [0, 2]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    Store(outside).add([folders.record()])
    inside.mkdir()
    (inside / "runs.jsonl").symlink_to(outside / "runs.jsonl")
    (inside / "below").symlink_to(outside)
    assert watched(inside).overview()["folders"] == []


def test_very_many_points_become_few_and_keep_their_outlier(tmp_path):
    folders.long_run(tmp_path, points=200_000)
    made = watched(tmp_path)
    began = time.perf_counter()
    (run,) = only_folder(made)["runs"]
    assert not made.refresh()
    assert time.perf_counter() - began < 1.0
    assert run["points"] == 200_000
    assert len(run["curve"][0]) <= 4000
    assert max(run["curve"][1]) == 50.0
    assert run["curve"][0][0] == 0
    assert run["curve"][0][-1] == 199_999


def test_a_hundred_runs_share_the_points_of_a_screen(tmp_path):
    rng = np.random.default_rng(0)
    records = []
    for seed in range(100):
        steps = np.sort(rng.choice(100_000, 500, replace=False))
        curve = [(int(step), 1.0) for step in steps]
        records.append(folders.record(seed, points=2, curve=curve))
    Store(tmp_path).add(records)
    made = watched(tmp_path)
    told = only_folder(made)
    assert len(told["runs"]) == 100
    assert sum(len(run["curve"][0]) for run in told["runs"]) <= 4000 + 100


def test_thinned_curves_keep_order_and_ends():
    curve = np.column_stack([np.arange(10_000), np.random.default_rng(0).normal(size=10_000)])
    few = thinned(curve, 200)
    assert len(few) <= 200
    assert (np.diff(few[:, 0]) > 0).all()
    assert few[0, 0] == 0
    assert few[-1, 0] == 9999
    assert few[:, 1].min() == curve[:, 1].min()
    assert few[:, 1].max() == curve[:, 1].max()
    assert thinned([]).shape == (0, 2)
    assert len(thinned(np.full((500, 2), np.nan), 50)) <= 50


def test_probes_are_found_by_the_id_of_their_run_alone(tmp_path):
    folders.going_on(tmp_path, probe=folders.probe_of(100))
    made = watched(tmp_path)
    (run,) = only_folder(made)["runs"]
    probe = made.probe(run["id"])
    assert probe["step"] == 100
    assert len(probe["sample"]["obs"]) == 100
    assert len(probe["episode"]["imagined"]) == len(probe["episode"]["starts"])
    assert [one["learner"] for one in probe["insight"][-1]["learners"]] == [0, 1]
    assert made.probe("../../etc/passwd") is None
    (tmp_path / "losse_seed0" / PROBE).write_text("{")
    assert "cannot be shown" in made.probe(run["id"])["problem"]
