"""Times on a cluster: measured parts, and the arithmetic from them."""

import pytest

pytest.importorskip("ray", reason="needs losse[ray]")

from benchmarks.distributed import bench, measure, report
from losse.runs.record import Record
from losse.runs.store import read_records

COSTS = {"write": 1.0, "read": 1.0, "merge": 0.5, "solve": 2.0, "row": 1e-4, "bytes": 1e6}


def test_on_paper_more_workers_learn_faster_until_merging_outweighs():
    rows = 10_000_000
    seconds = measure.on_paper(COSTS, rows, (1, 2, 8, 64, 100_000))
    level = 4 * 1.5 + 3.0  # read and add four, solve, write
    assert seconds[1] == pytest.approx(rows * 1e-4 + -(-rows // (8 * measure.BLOCK)) * 2 + level)
    assert seconds[1] > seconds[2] > seconds[8] > seconds[64]
    assert seconds[100_000] > 9 * level  # a tree of nine levels


def test_every_part_is_measured_and_drawn(tmp_path, monkeypatch):
    class Local:
        def __init__(self, *_):
            pass

        __enter__ = __exit__ = lambda *_: None

    calls = []
    monkeypatch.setattr(measure, "connected", Local)
    monkeypatch.setattr(measure, "fit", lambda *_, n_workers, **__: calls.append(n_workers))
    monkeypatch.setattr(measure, "N_GRIDS", {"square": 4})
    monkeypatch.setattr(measure, "INCREMENTS", (5,))
    monkeypatch.setattr(measure, "BLOCK", 100)
    monkeypatch.setitem(bench.ROWS, "quick", {"square": 400})
    bench.run(bench.Settings("quick", ("square",), results=tmp_path))
    assert calls == [2, 1, 2]  # the first starts the processes
    (record,) = read_records(tmp_path / "quick")
    assert record.score == pytest.approx(1 / record.details["row"])
    assert record.details["increments"][0]["rows"] == 5
    text = (tmp_path / "quick" / "table.md").read_text()
    assert "| square | 484 | 400 | alone |" in text
    assert "| square | 64 |" in text


def test_efficiency_is_measured_against_one_process_without_ray():
    details = COSTS | {"features": 10, "increments": [], "fit2": 10.0}
    options = {"rows": 1000, "cores": 2, "instructions": "AVX2"}
    record = Record(
        experiment="bench-distributed", method="losse", setting="square", seed=0, score=100.0,
        settings=options, details=details,
    )  # fmt: skip
    assert "| square | 10 | 1,000 | 2 | 2 | 100 | 0.50 |" in report.document([record])
