"""The figure of `losse train`: returns and model errors of all records in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.style import RC, style_of


def draw(
    records: Sequence[Record], folder: Path, return_of: str = "mean of an evaluation"
) -> list[Path]:
    """Draw one line per record; return the files written.

    The errors of world models have a panel if any record has them.
    """
    errors = [record for record in records if record.details.get("model_error")]
    with mpl.rc_context(RC):
        n_panels = 2 if errors else 1
        figure = Figure(figsize=(4 * n_panels, 3.2), layout="constrained")
        left, *right = figure.subplots(1, n_panels, squeeze=False)[0]
        for record in records:
            style = style_of(record.method)
            name = f"{style.label}, seed {record.seed}"
            left.plot(*zip(*record.curve, strict=True), **style.line(label=name))
        left.set(title="Return", xlabel="environment steps", ylabel=return_of)
        for axes in right:
            for record in errors:
                points = zip(*record.details["model_error"], strict=True)
                axes.plot(*points, **style_of(record.method).line(label=None))
            axes.set(
                title="Error of the world model",
                xlabel="environment steps",
                ylabel="new steps, relative to their change",
                ylim=(0, None),
            )
        for axes in (left, *right):
            axes.locator_params(axis="x", nbins=5)
        figure.legend(loc="outside lower center", ncols=2 * n_panels)
        return save_figure(figure, folder / "learning_curve")
