"""Figures of the random walk, drawn from its records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.style import BLUE, STYLES, plot_means
from losse.runs.table import mean_score
from losse.streams import piecewise_random_walk

PAPER = ("losse", "nn-online", "nn-batch")
SHOWN_STREAMS = 4


def draw_errors(records: Sequence[Record]) -> Figure:
    """Final error against correlation: the paper's methods, then all."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_methods(left, [record for record in records if record.method in PAPER])
    _draw_methods(right, records)
    left.set(title="The paper's methods", ylabel="mean squared error at the end")
    right.set(title="All")
    for axes in (left, right):
        axes.set(xlabel="correlation level d", yscale="log")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def draw_streams(records: Sequence[Record]) -> Figure:
    """One stream at each of a few levels: inputs (dots) around their drifting centre (line)."""
    options = records[0].settings
    levels = sorted({float(record.setting) for record in records})
    picked = np.linspace(0, len(levels) - 1, min(SHOWN_STREAMS, len(levels))).round().astype(int)
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    shown = min(options["samples"], 30 * options["period"])
    for axes, level in zip(
        figure.subplots(1, len(picked), sharey=True, squeeze=False)[0],
        [levels[i] for i in picked],
        strict=True,
    ):
        stream = piecewise_random_walk(
            options["samples"], correlation=level, period=options["period"], seed=records[0].seed
        )
        time = np.arange(shown)
        axes.scatter(time, stream.X[:shown, 0], s=2, color="0.45", alpha=0.6, linewidths=0,
                     rasterized=True, label="input x")  # fmt: skip
        axes.step(time, stream.centres[:shown], color=BLUE, where="post", label="centre S")
        axes.set(title=f"d = {level:g}", xlabel="samples")
    figure.axes[0].set_ylabel("input x")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=3)
    return figure


def _draw_methods(axes: Axes, records: Sequence[Record]) -> None:
    for method, style in STYLES.items():
        own = [record for record in records if record.method == method]
        levels = sorted({float(record.setting) for record in own})
        means = [mean_score(own, method, level) for level in levels]
        if own:
            label = f"River's {own[0].settings['regressor']}" if method == "river" else style.label
            plot_means(axes, levels, [m for m in means if m], **style.marked(label=label))
