"""`losse bench core`: sections leave records, and the table shows all of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jax")

from benchmarks.core import bench
from benchmarks.core.page import Row, renew, table
from benchmarks.core.sections import growth
from benchmarks.measures import Measure, Outcome
from losse._kernels.block import INSTRUCTIONS
from losse.runs.store import read_records

ROOT = Path(__file__).parents[2]


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
        bench.run(bench.Settings(sections=chosen, targets=("widest",), results=tmp_path))
    assert {(r.setting, r.score) for r in read_records(tmp_path)} == {
        (f"update-30, {INSTRUCTIONS}", 4.0), (f"predict-30, {INSTRUCTIONS}", 5.0),
    }  # fmt: skip
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert "| update | 1 ms | 3 ms | 4 | | >= 3 | yes |" in lines
    assert f"## {INSTRUCTIONS}" in lines
    assert f"update-30, {INSTRUCTIONS}: 0 s on core 1" in capsys.readouterr().out


def test_each_instruction_set_has_a_column():
    def measures(ratio):
        return [Measure("update", "1 ms", "3 ms", ratio, ratio + 1, ">= 3").as_dict()]

    table = bench.beside({"AVX-512": measures(4.0), "AVX2": measures(2.0)})
    assert table.columns == ("ratio", "AVX-512", "AVX2", "target")
    assert table.rows == [("update", "4 (5)", "2 (3)", ">= 3")]
    lone = bench.beside({"AVX-512": measures(4.0), "AVX2": []})
    assert lone.rows == [("update", "4 (5)", "", ">= 3")]


def test_growth_is_relative_to_the_yardstick():
    marks, slower = (1_000, 10_000, 100_000), [1.0, 1.0, 2.0]
    flat = growth.growth("sparse", marks, {"sparse": slower, "yardstick": slower})
    assert flat.ratio == 1.0
    assert flat.met
    steep = growth.growth("sparse", marks, {"sparse": slower, "yardstick": [1.0] * 3})
    assert steep.met is False


def test_quick_runs_do_not_replace_the_published_records(tmp_path):
    assert bench.Settings(preset="quick", results=tmp_path).folder == tmp_path / "quick"


@pytest.mark.parametrize("name", ["README.md", "docs/speed.md"])
def test_pages_show_the_records(name, tmp_path):
    page = tmp_path / "page.md"
    page.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    renew([page], ROOT / "results" / "bench")
    assert page.read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8")
    assert "| update, 30 grids" in page.read_text(encoding="utf-8")


def test_a_page_shows_the_less_favourable_ratio_of_each_machine():
    def record(instructions, **ratios):
        measures = [
            Measure(name, "", "", wall, cpu, ">= 3").as_dict()
            for name, (wall, cpu) in ratios.items()
        ]
        return SimpleNamespace(
            settings={"instructions": instructions}, details={"measures": measures}
        )

    rows = [Row("speed: one / two", ("one", "two"), "x"), Row("other", ("none",))]
    found = {"A": [record("AVX2", one=(4.0, 5.0)), record("AVX2", two=(6.0, 2.0))], "B": []}
    drawn = table(rows, found)
    assert drawn.columns == ("", "A, AVX2", "target")
    assert drawn.rows == [("speed: one / two", "4x / 2x", "3x"), ("other", "", "")]
