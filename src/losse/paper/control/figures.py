"""Figures of control, drawn from its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.paper.control.summary import interquartile
from losse.paper.control.tasks import TASKS, Task, curves_of, tasks_of
from losse.runs.record import Record
from losse.runs.style import (
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Style,
    plot_means,
    staggered,
    style_of,
)
from losse.runs.table import means_of
from losse.typing import Array

SIZES = (SKY, GREEN, PURPLE, VERMILION, ORANGE)
MARKS = "vs^DP"
"""Colours and marks of the coresets, by size."""


def draw_curves(
    records: Sequence[Record], methods: Sequence[str], tasks: Mapping[str, Task] = TASKS
) -> Figure:
    """Normalised return along training, one task beside the other."""
    figure, panels = _panels(records, methods, tasks, curves_of, positive=False)
    panels[0].set(ylabel="normalised return")
    return figure


def draw_errors(
    records: Sequence[Record], methods: Sequence[str], tasks: Mapping[str, Task] = TASKS
) -> Figure:
    """Error of each model on the agent's newest steps, as long as all seeds have one."""

    def errors_of(own: Sequence[Record]) -> tuple[Array, Array]:
        found = [record.details["model_error"] for record in own]
        known = min(map(len, found))  # a model that diverges has no more
        errors = np.array([curve[:known] for curve in found])
        return errors[0, :, 0], errors[:, :, 1]

    figure, panels = _panels(records, methods, tasks, errors_of, positive=True)
    for axes in panels:
        axes.set_yscale("log")
    panels[0].set(ylabel="normalised error of one step")
    return figure


def _panels(
    records: Sequence[Record],
    methods: Sequence[str],
    tasks: Mapping[str, Task],
    curves: Callable[[Sequence[Record]], tuple[Array, Array]],
    positive: bool,
) -> tuple[Figure, Sequence[Axes]]:
    """Means over seeds of what ``curves`` finds in records, one task beside the other."""
    envs = tasks_of(records, tasks)
    figure = Figure(figsize=(3.3 * max(len(envs), 2), 3.3), layout="constrained")
    panels = figure.subplots(1, len(envs), sharey=True, squeeze=False)[0]
    for axes, env in zip(panels, envs, strict=True):
        present = [m for m in methods if any((r.method, r.setting) == (m, env) for r in records)]
        for k, method in enumerate(present):
            steps, values = curves([r for r in records if (r.method, r.setting) == (method, env)])
            style = staggered(style_of(method), k, len(present))
            plot_means(axes, steps, means_of(values), positive=positive, **style)
        axes.set(title=tasks[env].title, xlabel="environment steps")
        axes.locator_params(axis="x", nbins=4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure, panels


def draw_interquartile(
    records: Sequence[Record], methods: Sequence[str], tasks: Mapping[str, Task] = TASKS
) -> Figure | None:
    """The interquartile mean of each method; None if no method has all that it takes."""
    envs = tasks_of(records, tasks)
    found = {
        method: summary
        for method in methods
        if (summary := interquartile([r for r in records if r.method == method], envs))
    }
    if not found:
        return None
    figure = Figure(figsize=(5.5, 0.8 + 0.3 * len(found)), layout="constrained")
    axes = figure.subplots()
    for place, (method, summary) in enumerate(found.items()):
        colour = style_of(method).color
        axes.barh(place, summary.high - summary.low, 0.6, summary.low, color=colour, alpha=0.35)
        axes.plot([summary.estimate] * 2, [place - 0.3, place + 0.3], color=colour)
    axes.set_yticks(range(len(found)), [style_of(method).label for method in found])
    axes.invert_yaxis()
    axes.set(xlabel="interquartile mean, 95 % interval")
    axes.set_xlim(left=0)
    return figure


def draw_efficiency(records: Sequence[Record]) -> Figure:
    """Normalised return by environment steps, and by seconds of training."""
    figure = Figure(figsize=(7.5, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for method in ("losse", "coreset"):
        sizes = sorted({record.setting for record in records if record.method == method})
        for k, size in enumerate(sizes):
            own = [r for r in records if (r.method, r.setting) == (method, size)]
            style = style_of(method)
            if method == "coreset":
                i = k % len(SIZES)
                style = Style(f"coreset of {size:g}", SIZES[i], style.linestyle, MARKS[i])
            steps, returns = curves_of(own)
            marked = staggered(style, k, len(sizes))
            _plot(left, steps, returns, marked)
            seconds = np.array([r.details["cpu_seconds"] for r in own])[:, :, 1].mean(axis=0)
            _plot(right, seconds, returns, marked)
    left.set(title="By samples", xlabel="environment steps", ylabel="normalised return")
    right.set(title="By time", xlabel="seconds on the processor")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _plot(axes: Axes, x: Any, returns: Any, style: dict[str, Any]) -> None:
    plot_means(axes, x, means_of(returns), positive=False, **style)
