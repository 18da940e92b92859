"""The page on accuracy: every figure in a table of results is that of the records."""

import re
from pathlib import Path

import pytest

from benchmarks.accuracy.tables import KINDS, fill
from losse.runs.record import Record
from losse.runs.store import read_records

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
RECORDS = ROOT / "results" / "bench" / "accuracy"


def record(contender, kind, tests):
    n = len(tests)
    details = {
        "samples": [1000, 3000, 10_000][:n],
        "test": tests,
        "prequential": [2 * test for test in tests],
        "seconds": [0.1, 0.3, 1.0][:n],
        "nbytes": [10**6] * n,
        "tasks": [],
        "calibration": {},
    }
    return Record(
        experiment="accuracy", method=contender, setting=f"Hopper-v5 {kind}", seed=0,
        score=tests[-1], seconds=details["seconds"][-1], details=details,
    )  # fmt: skip


def test_tables_are_those_of_the_records():
    assert fill(PAGE, read_records(RECORDS)) == PAGE


def test_all_tables_of_results_have_a_marker():
    """Numbers stand in generated tables alone; tables of words may be written by hand."""
    by_hand = re.sub(r"<!-- table: .*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    assert not re.search(r"^\|.*\d?\.\d{2,}", by_hand, flags=re.MULTILINE)
    assert not re.search(r"nmse (of|is) \d?\.\d", by_hand)


def test_markers_name_tables_that_exist():
    names = {
        "test",
        "state",
        "reward",
        "termination",
        "prequential",
        "ratio",
        "forgetting",
        "time",
        "memory",
        "calibration",
        "variants",
        "about",
    }
    markers = re.findall(r"<!-- table: (.*?) -->", PAGE)
    assert markers
    assert set(markers) <= {f"{kind} {name}" for kind in KINDS for name in names}


def test_a_table_is_filled_in():
    records = [
        record("recommended", "random", [0.2, 0.05, 0.01]),
        record("full-replay", "random", [0.1, 0.05]),
    ]
    page = fill("<!-- table: random test -->old<!-- end -->", records)
    assert "| recommended | .200 / .050 / .010 |" in page
    assert "| full-replay | .100 / .050 |" in page
    assert "old" not in page
    page = fill("<!-- table: random ratio --><!-- end -->", records)
    assert "| recommended | 2 / 1 |" in page
    assert "full-replay" not in page


def test_parts_are_shown_of_records_that_have_them():
    new, old = (record(name, "changing", [0.4, 0.1]) for name in ("recommended", "knn"))
    new.details["parts"] = {"reward": [0.3, 0.2]}
    place = "<!-- table: changing reward -->nothing yet<!-- end -->"
    assert fill(place, [old]) == place
    page = fill(place, [new, old])
    assert "| recommended | .300 / .200 |" in page
    assert "knn" not in page
    assert "knn" in fill("<!-- table: changing test --><!-- end -->", [new, old])


def test_prequential_errors_are_means_over_all_rows():
    page = fill(
        "<!-- table: changing prequential --><!-- end -->",
        [record("knn", "changing", [0.4, 0.1])],
    )
    expected = (1000 * 0.8 + 2000 * 0.2) / 3000
    assert f"| knn | .800 / {expected:.3f}".replace("0.", ".") in page


def test_forgetting_is_the_rise_on_a_finished_task():
    errors = [[0.2, 1, 1, 1], [0.1, 0.3, 1, 1], [0.12, 0.3, 0.2, 1], [0.1, 0.3, 0.2, 0.1]]
    found = record("knn", "tasks", [0.2])
    found.details["tasks"] = [(5000 * (k + 1), each) for k, each in enumerate(errors)]
    once = record("full-replay", "tasks", [0.1])
    once.details["tasks"] = [(20_000, [0.1] * 4)]
    page = fill("<!-- table: tasks forgetting --><!-- end -->", [found, once])
    assert "| knn | 0 / 20 |" in page
    assert "full-replay" not in page


@pytest.mark.parametrize("text", ["nothing", "<!-- table: random test -->\n<!-- end -->\n"])
def test_without_records_a_page_stays(text):
    assert fill(text, []) == text
