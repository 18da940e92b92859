"""The figure of the denoising experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from losse.paper.denoising_table import PAPER, PIXELS, on_mnist
from losse.paper.look import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, plot_means
from losse.paper.table import mean_score
from losse.records import Record

_TICKS = (0.02, 0.025, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14)
_STYLES: dict[str, dict[str, Any]] = {
    "losse": {"color": BLUE, "marker": "o", "markersize": 4},
    "fourier": {"color": VERMILION, "marker": "s", "markersize": 4},
    "relu": {"color": GREEN, "marker": "^", "markersize": 4},
    "tile": {"color": ORANGE, "marker": "D", "markersize": 4},
    "tile-80": {"color": PURPLE, "marker": "v", "markersize": 4},
    "nn": {"color": BLACK, "marker": "P", "markersize": 4},
    "linear": {"color": SKY, "marker": "X", "markersize": 4},
}


def draw_errors(records: Sequence[Record], methods: Sequence[str]) -> Figure:
    """Error against patch size, on the left by Adam, on the right in closed form."""
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    pixels = sorted({int(record.setting) for record in records})
    for method in methods:
        name = method.removesuffix("-ftl")
        axes = right if method in ("linear", f"{name}-ftl") else left
        means = {size: mean_score(records, method, size) for size in pixels}
        known = {size: mean for size, mean in means.items() if mean is not None}
        if known:
            plot_means(axes, list(known), list(known.values()), label=name, **_STYLES[name])
        if known and on_mnist(records) and method in PAPER:
            axes.plot(PIXELS, PAPER[method], ":", color=_STYLES[name]["color"], linewidth=1)
    if on_mnist(records):
        left.plot([], [], ":", color="0.4", linewidth=1, label="in the paper")
    left.set(title="Linear layer or network by Adam", ylabel="Test mean squared error per pixel")
    right.set(title="Linear layer in closed form, one pass")
    for axes in (left, right):
        axes.set(xlabel="Pixels in the patch", xticks=pixels, yscale="log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    return figure
