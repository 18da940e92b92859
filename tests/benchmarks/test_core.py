"""`losse bench core`: sections leave records, and the table shows all of them."""

import pytest

pytest.importorskip("jax")

from benchmarks.core import bench
from benchmarks.measures import Measure, Outcome

from losse.runs.store import read_records


def section(name, ratio):
    def run(context):
        context.step("measuring")
        return Outcome([Measure(name, "1 ms", "3 ms", ratio, target=">= 3")], {"raw": [1, 2]})

    return run


def test_a_section_replaces_its_record_and_keeps_the_others(tmp_path, monkeypatch, capsys):
    from benchmarks.core.sections import predict_30, update_30

    monkeypatch.setattr(bench, "pin", lambda core: 1)
    monkeypatch.setattr(
        bench, "run_jobs", lambda function, jobs, workers: [(job, function(job)) for job in jobs]
    )
    for ratio in (2.0, 4.0):
        monkeypatch.setattr(update_30, "run", section("update", ratio))
        monkeypatch.setattr(predict_30, "run", section("predict", 5.0))
        chosen = ("predict-30", "update-30") if ratio == 2.0 else ("update-30",)
        bench.run(bench.Settings(sections=chosen, results=tmp_path))
    assert {(r.setting, r.score) for r in read_records(tmp_path)} == {
        ("update-30", 4.0), ("predict-30", 5.0),
    }  # fmt: skip
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert lines[2] == "| update | 1 ms | 3 ms | 4 | | >= 3 | yes |"
    assert len(lines) == 4
    assert "update-30: 0 s on core 1" in capsys.readouterr().out


def test_quick_runs_do_not_replace_the_published_records(tmp_path):
    assert bench.Settings(preset="quick", results=tmp_path).folder == tmp_path / "quick"
