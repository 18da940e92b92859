"""The time of single calls: every call is counted, and a slow one is seen."""

import os

import pytest

pytest.importorskip("gymnasium")

from benchmarks.latency import bench, loop, report
from benchmarks.targets import VARIABLES, available, compiled_for
from losse._kernels.block import INSTRUCTIONS
from losse.runs.record import Record
from losse.runs.store import read_records


def record(p999, instructions="AVX2"):
    """A record whose calls have this quantile."""
    times = {"p50": 1e-4, "p99": 1e-4, "p99.9": p999, "max": p999}
    call = {"calls": 100, "wall": times, "cpu": times, "histogram": [0] * 80}
    return Record(
        experiment="bench-latency", method="losse", setting=f"grids, {instructions}", seed=0,
        score=p999, settings={"model": "grids", "instructions": instructions},
        details={"calls": dict.fromkeys(loop.CALLS, call)},
    )  # fmt: skip


def test_quantiles_are_those_of_all_calls():
    seconds = [1e-3] * 999 + [1.0]
    found = loop.quantiles(seconds)
    assert found["p50"] == found["p99"] == 1e-3
    assert 1e-3 < found["p99.9"] < found["max"] == 1.0


def test_one_slow_call_in_a_thousand_breaks_the_promise():
    assert " yes |" in report.table([record(4e-3)])
    assert " no |" in report.table([record(6e-3)])


def test_the_widest_instructions_come_first():
    found = report.ordered([record(1e-3, "AVX2"), record(1e-3, "AVX-512")])
    assert [r.settings["instructions"] for r in found] == ["AVX-512", "AVX2"]


def test_a_target_reaches_new_processes_only_meanwhile(monkeypatch):
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    with compiled_for("avx2"):
        assert VARIABLES["avx2"].items() <= os.environ.items()
    assert "NUMBA_CPU_NAME" not in os.environ
    assert available()[0] == "widest"


def test_every_call_of_the_loop_is_timed(tmp_path, monkeypatch):
    monkeypatch.setitem(bench.ROWS, "quick", 12)
    monkeypatch.setattr(loop, "pin", lambda core: None)
    monkeypatch.setattr(
        bench, "run_jobs", lambda function, jobs, workers: [(job, function(job)) for job in jobs]
    )
    bench.run(bench.Settings("quick", ("grids",), ("widest",), results=tmp_path))
    (only,) = read_records(tmp_path / "quick")
    calls = {name: call["calls"] for name, call in only.details["calls"].items()}
    assert calls == {"partial_fit": 12, "predict": 11, "update": 12, "imagine": 2}
    assert all(sum(c["histogram"]) == c["calls"] for c in only.details["calls"].values())
    assert only.settings["instructions"] == INSTRUCTIONS
    text = (tmp_path / "quick" / "table.md").read_text()
    assert all(what in text for what in loop.CALLS.values())
    assert (tmp_path / "quick" / "histogram.png").stat().st_size > 1000
