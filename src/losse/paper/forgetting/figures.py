"""Figures of forgetting from its records: maps of wrong predictions, and their share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.animation import Animation, FuncAnimation
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from losse.envs.gridworld_dynamics import BARRIER, Layout
from losse.paper.forgetting.experiment import METHODS, mapped
from losse.runs.record import Record
from losse.runs.style import YELLOW, plot_means, style_of
from losse.runs.table import means_of

SNAPSHOTS = 6
MILLISECONDS = 150
"""Between two pictures of the animation."""
RED = "#CC0000"
NEVER, BEFORE = "white", "0.87"
"""Cells that were never visited, and those that were, but not lately; the latest are yellow."""
CAPTION = "yellow: visited lately;  grey: visited before;  red: wrong predictions where visited"


def draw_maps(records: Sequence[Record]) -> Figure:
    """A row of maps for each method, at a few moments."""
    rows = mapped(records)
    last = len(rows[0].details["maps"]) - 1
    # Denser in the beginning, where the visits change most.
    moments = np.unique((last * np.linspace(0.15, 1, SNAPSHOTS) ** 1.5).round().astype(int))
    figure = Figure(figsize=(1.75 * len(moments), 2.1 * len(rows) + 0.4), layout="constrained")
    panels = figure.subplots(len(rows), len(moments), squeeze=False)
    for i, (line, record) in enumerate(zip(panels, rows, strict=True)):
        for axes, k in zip(line, moments.tolist(), strict=True):
            step, share = record.curve[k]
            Map(axes, dot=2.5).show(record, k)
            head = f"step {step:,.0f}\n" if i == 0 else ""
            axes.set_title(f"{head}{share:.0%} wrong", fontsize=9, fontweight="normal")
        line[0].set_ylabel(style_of(record.method).label, fontweight="bold")
    figure.supxlabel(CAPTION, fontsize=8)
    return figure


def animate(records: Sequence[Record]) -> Animation:
    """The maps of all methods side by side, moving."""
    rows = mapped(records)
    figure = Figure(figsize=(3 * len(rows), 3.7), layout="constrained", dpi=80)
    maps = [Map(axes, dot=6) for axes in figure.subplots(1, len(rows), squeeze=False)[0]]
    title = figure.suptitle("step 0", fontsize=10)
    figure.supxlabel(CAPTION, fontsize=8)

    def show(k: int) -> list[Any]:
        title.set_text(f"step {rows[0].curve[k][0]:,.0f}")
        for panel, record in zip(maps, rows, strict=True):
            panel.show(record, k)
            label, share = style_of(record.method).label, record.curve[k][1]
            panel.axes.set_title(f"{label}: {share:.0%} wrong")
        return []

    count = len(rows[0].details["maps"])
    # Its last frame stays for two seconds.
    frames = [*range(count), *[count - 1] * (2000 // MILLISECONDS)]
    return FuncAnimation(figure, show, frames=frames, interval=MILLISECONDS)


class Map:
    """The Gridworld in one panel, with what is known of each cell at one moment."""

    def __init__(self, axes: Axes, dot: float) -> None:
        self.axes = axes
        self._dot = dot  # the area of the mark of one wrong action
        axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect="equal")
        axes.spines[:].set_visible(True)
        self._cells = axes.imshow(
            np.ones((1, 1, 3)), extent=(0, 1, 0, 1), origin="lower", interpolation="nearest"
        )
        self._wrong = axes.scatter([], [], s=[], color=RED, linewidths=0)
        low, high = Layout().gap
        left, right = BARRIER
        for bottom, top in ((0.0, low), (high, 1.0)):
            axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, color="0.35"))
        for place, letter in ((0.025, "S"), (0.975, "G")):
            axes.text(place, place, letter, ha="center", va="center", fontsize=7, weight="bold")

    def show(self, record: Record, k: int) -> None:
        """Draw the record's map number k."""
        wrong, seen, recent = (
            _digits(record.details["maps"][k][name]) for name in ("wrong", "seen", "recent")
        )
        colours = np.empty((*seen.shape, 3))
        colours[:] = to_rgb(NEVER)
        colours[seen > 0] = to_rgb(BEFORE)
        colours[recent > 0] = to_rgb(YELLOW)
        self._cells.set_data(colours.swapaxes(0, 1))  # columns of the square are columns here
        cells = np.argwhere(wrong > 0)
        self._wrong.set_offsets((cells + 0.5) / len(wrong))
        self._wrong.set_sizes(self._dot * wrong[wrong > 0])


def _digits(text: str) -> NDArray[np.int64]:
    """A map of a record as an array, by column and row of cells.

    >>> _digits("0123")
    array([[0, 1],
           [2, 3]])
    """
    side = round(len(text) ** 0.5)
    return np.array(list(text), dtype=np.int64).reshape(side, side)


SMALL_SHARE = 1e-3
"""Share of wrong predictions below which the axis is linear."""


def draw_shares(records: Sequence[Record]) -> Figure:
    """The share of wrong predictions over time, where the agent was and where it is now."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    was, now = figure.subplots(1, 2, sharey=True)
    for method in METHODS:
        own = [record for record in records if record.method == method]
        if own:
            _plot(was, [record.curve for record in own], method)
            _plot(now, [record.details["recent"] for record in own], method)
    was.set(title="At all places visited so far", ylabel="share of wrong predictions")
    now.set(title="At those of the last 250 steps")
    # Most are close to zero, and some are zero.
    was.set_yscale("symlog", linthresh=SMALL_SHARE)
    was.set_ylim(0, 1)
    for axes in (was, now):
        axes.set_xlabel("steps")
    handles, labels = was.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _plot(axes: Axes, curves: Sequence[Any], method: str) -> None:
    values = np.array(curves, dtype=np.float64)
    style = style_of(method).line()
    plot_means(axes, values[0, :, 0], means_of(values[:, :, 1]), **style)
