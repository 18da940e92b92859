"""The timings of planners: every one has a record, and the target is judged by clock and CPU."""

import pytest

pytest.importorskip("jax")

from benchmarks.planning import Settings, Task, run, targets
from losse.runs.record import Record
from losse.runs.workers import run_jobs


def record(model, planner, ms, cpu_ms):
    details = {"mean_cpu_seconds_per_row": cpu_ms / 1e3}
    return Record(
        experiment="bench-planning", method=model, setting=planner, seed=0, score=ms,
        details=details,
    )  # fmt: skip


def test_the_target_is_judged_by_clock_and_processor():
    fast, busy, slow = (
        targets({("losse-paper", "icem"): record("losse-paper", "icem", *times)})
        for times in [(30, 29), (80, 29), (80, 79)]
    )
    assert [one.met for (one,) in (fast, busy, slow)] == [True, False, False]


def test_every_planner_has_a_record_and_a_place_in_the_table(tmp_path, monkeypatch, capsys):
    tiny = (
        Task("Pendulum-v1", {"icem": {"horizon": 2, "n_samples": 5, "n_iterations": 1}}),
        Task("CartPole-v1", {"beam": {"horizon": 2, "width": 4}}),
    )
    monkeypatch.setattr("benchmarks.planning.TASKS", tiny)
    monkeypatch.setattr("benchmarks.planning.pin", lambda core: None)  # not the whole test process
    monkeypatch.setattr(
        "benchmarks.planning.run_jobs", lambda *job, workers: run_jobs(*job, workers=0)
    )
    settings = Settings(preset="quick", models=("losse-planning",), results=tmp_path)
    records = run(settings)
    assert {(r.method, r.setting) for r in records} == {
        ("losse-planning", "icem"),
        ("losse-planning", "beam"),
    }
    assert all(r.details["rows"] == 3 and r.score > 0 for r in records)
    assert "| model | icem | beam |" in (tmp_path / "quick" / "table.md").read_text()
    assert "losse-planning" in capsys.readouterr().out


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="models has 'mine'"):
        Settings(models=("mine",))
