"""Where do table and figures go?  Beside the records that they are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from benchmarks.accuracy_figures import draw
from benchmarks.accuracy_table import document, fill, long_table
from losse.runs.record import Record
from losse.runs.style import LOOK


def report(records: Sequence[Record], folder: Path) -> str:
    """Write table.md, table.csv and the figures (PNG and SVG); return the text of the tables."""
    if not records:
        raise FileNotFoundError(f"no records in {folder}")
    text = document(records)
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "table.csv").write_text(long_table(records).csv() + "\n", encoding="utf-8")
    with mpl.rc_context(LOOK):
        for stem, figure in draw(records).items():
            figure.savefig(folder / f"{stem}.png", dpi=160)
            figure.savefig(folder / f"{stem}.svg", metadata={"Date": None})
    return text


def renew_page(records: Sequence[Record], page: Path) -> None:
    """Put the tables of these records into a page of the documentation."""
    page.write_text(fill(page.read_text(encoding="utf-8"), records), encoding="utf-8")
