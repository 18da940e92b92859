"""The functional form beside the listing: all learn the same, and each in its own way."""

import pytest

pytest.importorskip("jax")
pytest.importorskip("mujoco")

from benchmarks import functional
from benchmarks.measures import Measure, Outcome
from losse.runs.store import read_records


def test_a_record_and_its_table_hold_the_ratios(tmp_path, monkeypatch):
    outcome = Outcome([Measure("update in a scan", "1 us", "4 us", 4.0, 3.5, ">= 3")])
    monkeypatch.setattr(functional, "pin", lambda core: None)
    monkeypatch.setattr(functional, "compared", lambda rows, seed, say: outcome)
    monkeypatch.setattr(functional, "run_jobs", lambda f, jobs, workers: [(0, f(jobs[0]))])
    functional.run(functional.Settings("quick", results=tmp_path))
    (record,) = read_records(tmp_path / "quick")
    assert record.score == 4.0
    text = (tmp_path / "quick" / "table.md").read_text()
    assert "| update in a scan | 1 us | 4 us | 4 | 3.5 | >= 3 | yes |" in text


@pytest.mark.long
def test_all_ways_are_timed_and_learn_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(functional, "pin", lambda core: None)
    monkeypatch.setattr(functional, "N_GRIDS", 4)
    monkeypatch.setattr(functional, "run_jobs", lambda f, jobs, workers: [(0, f(jobs[0]))])
    functional.run(functional.Settings("quick", results=tmp_path))
    (record,) = read_records(tmp_path / "quick")
    names = [m["name"] for m in record.details["measures"]]
    assert names == [
        "update in a scan", "update of a batch", "update in a scan, XLA alone", "prediction",
    ]  # fmt: skip
    details = record.details
    assert details["largest_difference_of_predictions"] < 0.1 * details["largest_prediction"]
    assert "XLA alone" in (tmp_path / "quick" / "table.md").read_text()
