"""The figure of the sparsity study, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from losse.paper.look import BLUE, ORANGE, VERMILION, plot_means
from losse.paper.sparsity import bins_of
from losse.paper.table import mean_score
from losse.records import Record

STYLES: dict[str, dict[str, Any]] = {
    "losse": {"color": BLUE, "label": "follow the leader", "marker": "o"},
    "gradient-descent": {
        "color": VERMILION,
        "label": "gradient descent, minibatch of 50",
        "linestyle": "--",
        "marker": "s",
    },
    "adam": {"color": ORANGE, "label": "Adam, minibatch of 50", "linestyle": "-.", "marker": "^"},
}


def draw_errors(records: Sequence[Record]) -> Figure:
    """Error against correlation, one panel for each number of bins."""
    bins = bins_of(records)
    figure = Figure(figsize=(2.5 * len(bins) + 0.8, 3.2), layout="constrained")
    panels = figure.subplots(1, len(bins), sharey=True, squeeze=False)[0]
    for axes, number in zip(panels, bins, strict=True):
        some = [record for record in records if record.settings["n_bins"] == number]
        for method, style in STYLES.items():
            levels = sorted({float(r.setting) for r in some if r.method == method})
            means = [mean_score(some, method, level) for level in levels]
            if levels:
                plot_means(axes, levels, [m for m in means if m], **style, markersize=4)
        axes.set(title=f"{number} bins", xlabel="correlation level d", yscale="log")
    panels[0].set_ylabel("mean squared error at the end")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
