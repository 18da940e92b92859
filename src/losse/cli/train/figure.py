"""The figure of `losse train`: returns and model errors of all records in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.style import RC, style_of


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw one line per record; return the files written."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for record in records:
            style = style_of(record.method)
            _plot(left, record.curve, **style.line(label=f"{style.label}, seed {record.seed}"))
            _plot(right, record.details.get("model_error", ()), **style.line(label=None))
        left.set(title="Return", xlabel="environment steps", ylabel="mean of an evaluation")
        right.set(
            title="Error of the world model",
            xlabel="environment steps",
            ylabel="new steps, relative to their change",
            ylim=(0, None),
        )
        for axes in (left, right):
            axes.locator_params(axis="x", nbins=5)
        figure.legend(loc="outside lower center", ncols=4)
        return save_figure(figure, folder / "learning_curve")


def _plot(axes: Axes, curve: Any, **style: Any) -> None:
    points = [(x, y) for x, y in curve]
    if points:
        axes.plot([x for x, _ in points], [y for _, y in points], **style)
