"""`losse bench accuracy`: every run leaves a record, and tables and figures come from records."""

import csv
import dataclasses
import re
import shutil

import pytest

pytest.importorskip("gymnasium")

from benchmarks.accuracy import bench as accuracy
from benchmarks.accuracy import plan
from benchmarks.accuracy.contenders import entries, leaders
from benchmarks.accuracy.streams import cache
from losse.cli import main
from losse.extras import EXTRAS
from losse.runs.store import Store, read_records

FEW = {
    "environments": ("Pendulum-v1",),
    "contenders": ("paper", "knn"),
    "kinds": ("random",),
    "workers": 0,
}


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "CHECKPOINTS", (50, 100))
        patch.setattr(plan, "LENGTH", {"random": 120, "changing": 120, "tasks": 120})
        patch.setattr(cache, "TEST_ROWS", 60)
        yield patch


@pytest.fixture(scope="module")
def settings(tmp_path_factory, small):
    folder = tmp_path_factory.mktemp("accuracy")
    made = accuracy.Settings(**FEW, results=folder / "results", cache=folder / "cache")
    accuracy.run(made)
    return made


def test_a_record_per_contender(settings):
    records = read_records(settings.folder)
    assert {(r.method, r.setting) for r in records} == {
        ("paper", "Pendulum-v1 random"),
        ("knn", "Pendulum-v1 random"),
    }
    for record in records:
        assert record.experiment == "accuracy"
        assert [n for n, _ in record.curve] == record.details["samples"] == [50, 100]
        assert record.score == record.curve[-1][1] == record.details["test"][-1]
        assert {name: len(errors) for name, errors in record.details["parts"].items()} == {
            "state": 2,
            "reward": 2,
        }
        assert record.seconds == record.details["seconds"][-1] > 0
        assert set(record.details["calibration"]) == (
            {"0.8", "0.9", "0.95"} if record.method == "paper" else set()
        )


def test_finished_runs_are_not_repeated(settings, tmp_path):
    copy = shutil.copytree(settings.folder, tmp_path / "copy")
    (record,) = [r for r in read_records(copy) if r.method == "knn"]
    Store(copy).put(dataclasses.replace(record, seconds=123.0))
    records = accuracy.run(dataclasses.replace(settings, results=copy))
    assert 123.0 in [r.seconds for r in records]


def test_a_failure_costs_its_run_only(settings, tmp_path, monkeypatch, capsys):
    def broken(X, Y, seed):
        raise RuntimeError("no such luck")

    monkeypatch.setitem(leaders.MAKERS, "paper", broken)
    with pytest.raises(SystemExit):
        accuracy.run(dataclasses.replace(settings, results=tmp_path))
    shown = capsys.readouterr()
    assert "no such luck" in shown.out
    assert "1 runs failed: paper_Pendulum-v1-random_seed0" in shown.err
    assert [r.method for r in read_records(tmp_path)] == ["knn"]
    assert (tmp_path / "table.md").exists()


def test_records_of_other_settings_are_refused(settings, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "CHECKPOINTS", (50, 110))
        with pytest.raises(ValueError, match="come from other settings"):
            accuracy.run(settings)


def test_tables_show_what_records_say(settings):
    records = {r.method: r for r in read_records(settings.folder)}
    with (settings.folder / "table.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 4
    for row in rows:
        details = records[row["contender"]].details
        at = details["samples"].index(int(row["rows"]))
        assert float(row["test nmse"]) == details["test"][at]
        assert float(row["reward nmse"]) == details["parts"]["reward"][at]
        assert row["termination nmse"] == ""
    text = (settings.folder / "table.md").read_text()
    assert f"{records['knn'].details['nbytes'][-1] / 1e6:.3g}" in text


def test_drawn_again_from_the_records_alone(settings):
    before = (settings.folder / "table.md").read_text()
    images = sorted(settings.folder.glob("*.svg"))
    assert [path.stem for path in images] == ["random-by-rows", "random-by-time"]
    for path in (settings.folder / "table.md", *images):
        path.unlink()
    accuracy.run(dataclasses.replace(settings, only_report=True))
    assert (settings.folder / "table.md").read_text() == before
    assert all(path.exists() for path in images)


def test_a_missing_package_is_named_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setitem(entries.NEEDS, "river-amf", ("river_of_another_world",))
    monkeypatch.setitem(EXTRAS, "river_of_another_world", "river")
    wanted = accuracy.Settings(**{**FEW, "contenders": ("knn", "river-amf")}, results=tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"river-amf needs .* 'losse\[river\]'"):
        accuracy.run(wanted)
    assert not list(tmp_path.iterdir())


def test_nothing_to_report(tmp_path):
    with pytest.raises(FileNotFoundError, match="no records"):
        accuracy.run(accuracy.Settings(results=tmp_path, only_report=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"environments": ("Cart",)}, "environments: 'Cart' is unknown; choose from Hopper-v5"),
        ({"contenders": ("svm",)}, "contenders: 'svm' is unknown; choose from recommended"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
    ],
)
def test_what_is_not_known_is_refused(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        accuracy.Settings(**wrong)


def test_from_the_command_line(settings, capsys):
    main(f"bench accuracy --only-report --results {settings.folder}".split())
    assert "Random policy" in capsys.readouterr().out
