"""Table and figure of the denoising experiment, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.style import plot_means, style_of
from losse.runs.table import Cell, Table, mean_score

PIXELS = (9, 16, 25, 36, 49)
PAPER = {
    "losse": (0.028, 0.029, 0.031, 0.034, 0.040),
    "fourier": (0.032, 0.039, 0.067, 0.100, 0.140),
    "relu": (0.035, 0.034, 0.037, 0.039, 0.043),
    "tile": (0.036, 0.039, 0.051, 0.061, 0.073),
    "nn": (0.036, 0.035, 0.034, 0.034, 0.033),
}
"""The paper's Table 1, at `PIXELS`."""
_TICKS = (0.02, 0.025, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14)


def error_table(records: Sequence[Record], methods: Sequence[str]) -> Table:
    """One row per method with its errors; below the paper's own, if on its data.

    `above optimum` is how far the training error is above the least that a linear layer on the same
    features can have.
    """
    pixels = sorted({int(record.setting) for record in records})
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        own = [record for record in records if record.method == method]
        if not own:
            continue
        errors = [mean_score(own, method, size) for size in pixels]
        seconds = float(np.mean([r.details["processor_seconds"] for r in own]))
        rows.append((method, *errors, seconds, *_training(own)))
        if on_mnist(records) and method in PAPER:
            known = dict(zip(PIXELS, PAPER[method], strict=True))
            rows.append((f"{method}, paper", *(known.get(p) for p in pixels), None, None, None))
    columns = [f"{size} pixels" for size in pixels]
    return Table(("method", *columns, "CPU seconds", "epochs", "above optimum"), rows)


def draw_errors(records: Sequence[Record], methods: Sequence[str]) -> Figure:
    """Error against patch size, on the left by Adam, on the right in closed form."""
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    pixels = sorted({int(record.setting) for record in records})
    for method in methods:
        name = method.removesuffix("-ftl")
        style = style_of(name)
        axes = right if method in ("linear", f"{name}-ftl") else left
        means = {size: mean_score(records, method, size) for size in pixels}
        known = {size: mean for size, mean in means.items() if mean is not None}
        if known:
            plot_means(axes, list(known), list(known.values()), **style.marked())
        if known and on_mnist(records) and method in PAPER:
            axes.plot(PIXELS, PAPER[method], ":", color=style.color, linewidth=1)
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


def on_mnist(records: Sequence[Record]) -> bool:
    """Whether the records may be set beside the paper's figures."""
    return all(record.settings["dataset"] == "mnist" for record in records)


def _training(records: Sequence[Record]) -> tuple[Cell, Cell]:
    """Mean number of epochs, and the mean excess of the training error in percent."""
    details = [record.details for record in records]
    if "epochs" not in details[0]:
        return None, None
    epochs = float(np.mean([d["epochs"] for d in details]))
    if "least_training_error" not in details[0]:
        return epochs, None
    excess = [d["training_error"] / d["least_training_error"] - 1 for d in details]
    return epochs, f"{100 * float(np.mean(excess)):.1f} %"
