"""Table and figures of an experiment, some of them moving, made from its records alone."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.animation import Animation
from matplotlib.figure import Figure

from losse.runs.experiment import Experiment
from losse.runs.store import read_records
from losse.runs.style import RC


def report(experiment: Experiment, folder: Path) -> list[Path]:
    """Write table.md, table.csv and all figures beside the records in `folder`.

    Raises FileNotFoundError if there are no records.
    """
    records = [record for record in read_records(folder) if record.experiment == experiment.NAME]
    if not records:
        raise FileNotFoundError(f"no records of {experiment.NAME} in {folder}")
    table = experiment.table(records)
    files = [folder / "table.md", folder / "table.csv"]
    for path, text in zip(files, (table.markdown(), table.csv()), strict=True):
        path.write_text(text + "\n", encoding="utf-8")
    with mpl.rc_context(RC):
        for stem, figure in experiment.draw(records).items():
            files += save_figure(figure, folder / stem)
    return files


def save_figure(figure: Figure | Animation, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG, or an animation as GIF; return the files."""
    if isinstance(figure, Animation):
        gif = stem.with_suffix(".gif")
        figure.save(gif, writer="pillow")
        return [gif]
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    figure.savefig(png, dpi=160)
    figure.savefig(svg, metadata={"Date": None})
    return [png, svg]
