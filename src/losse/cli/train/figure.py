"""The figure of `losse train`: returns and model errors of all records in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from losse.runs.style import RC as LOOK

STYLES: dict[str, dict[str, Any]] = {
    "losse": {"color": BLUE},
    "full-replay": {"color": GREEN, "linestyle": "-."},
    "online": {"color": VERMILION, "linestyle": "--"},
    "si": {"color": PURPLE, "linestyle": "--"},
    "coreset": {"color": ORANGE, "linestyle": "-."},
    "model-free": {"color": BLACK, "linestyle": ":"},
    "model-free-matched": {"color": SKY, "linestyle": ":"},
    "oracle": {"color": BLACK, "linewidth": 0.9},
}


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw one line per record; return the files written."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for record in records:
            style = STYLES.get(record.method, {})
            label = f"{record.method}, seed {record.seed}"
            _plot(left, record.curve, label=label, **style)
            _plot(right, record.details.get("model_error", ()), **style)
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
        files = [folder / "learning_curve.png", folder / "learning_curve.svg"]
        figure.savefig(files[0], dpi=160)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def _plot(axes: Axes, curve: Any, **style: Any) -> None:
    points = [(x, y) for x, y in curve]
    if points:
        axes.plot([x for x, _ in points], [y for _, y in points], **style)
