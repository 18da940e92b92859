"""What is committed in results/: complete, and what the documentation says."""

from pathlib import Path

import pytest

from losse.paper import load
from losse.runs.store import read_records

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "results.md"


@pytest.mark.parametrize(
    "name", ["random-walk", "sparsity", "forgetting", "classic-control", "continual"]
)
def test_the_documented_table_is_that_of_the_records(name):
    folder = ROOT / "results" / name
    table = load(name).table(read_records(folder)).markdown() + "\n"
    assert (folder / "table.md").read_text(encoding="utf-8") == table
    assert table in DOCUMENT.read_text(encoding="utf-8")


def test_the_readme_shows_the_table_of_forgetting():
    table = (ROOT / "results" / "forgetting" / "table.md").read_text(encoding="utf-8")
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")
