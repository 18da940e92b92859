"""The figure of `losse plan`: returns of episodes and model errors of all records in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from losse.cli.train.figure import STYLES
from losse.paper.look import LOOK
from losse.records import Record


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw one line per record; return the files written."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for record in records:
            style = {"marker": "o", "markersize": 3} | STYLES.get(record.method, {})
            left.plot(
                *_columns(record.curve), label=f"{record.method}, seed {record.seed}", **style
            )
            right.plot(*_columns(record.details["model_error"]), **style)
        left.set(title="Return", xlabel="environment steps", ylabel="one episode")
        right.set(
            title="Error of the world model",
            xlabel="environment steps",
            ylabel="new steps, relative to their change",
            ylim=(0, None),
        )
        for axes in (left, right):
            axes.locator_params(axis="x", nbins=5)
        figure.legend(loc="outside lower center", ncols=4)
        files = [folder / "learning_curve.png", folder / "learning_curve.svg"]
        figure.savefig(files[0], dpi=160)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def _columns(curve: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in curve], [y for _, y in curve]
