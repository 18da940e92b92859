"""Table and figures of an experiment, made from its records alone."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from losse.paper import load
from losse.paper.look import LOOK
from losse.records import read_records


def report(name: str, folder: Path) -> list[Path]:
    """Write table.md, table.csv and all figures (PNG and SVG) beside the records in `folder`.

    Raises FileNotFoundError if there are no records.
    """
    experiment = load(name)
    records = [record for record in read_records(folder) if record.experiment == name]
    if not records:
        raise FileNotFoundError(f"no records of {name} in {folder}")
    table = experiment.table(records)
    files = [folder / "table.md", folder / "table.csv"]
    for path, text in zip(files, (table.markdown(), table.csv()), strict=True):
        path.write_text(text + "\n", encoding="utf-8")
    with mpl.rc_context(LOOK):
        for stem, figure in experiment.draw(records).items():
            png, svg = folder / f"{stem}.png", folder / f"{stem}.svg"
            figure.savefig(png, dpi=160)
            figure.savefig(svg, metadata={"Date": None})
            files += [png, svg]
    return files
