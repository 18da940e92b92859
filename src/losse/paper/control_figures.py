"""The figures of control, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.paper.control import TASKS, mean_curve, tasks_of
from losse.paper.control_summary import interquartile
from losse.paper.look import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from losse.paper.table import mean_and_error
from losse.records import Record

STYLES: dict[str, dict[str, Any]] = {
    "losse": {"color": BLUE, "label": "Losse"},
    "full-replay": {"color": GREEN, "label": "full replay", "linestyle": "-."},
    "online": {"color": VERMILION, "label": "online", "linestyle": "--"},
    "si": {"color": PURPLE, "label": "SI", "linestyle": (0, (5, 1))},
    "coreset": {"color": ORANGE, "label": "coreset", "linestyle": "-."},
    "model-free": {"color": BLACK, "label": "no model", "linestyle": ":"},
    "model-free-matched": {"color": SKY, "label": "no model, as many gradient steps"},
    "oracle": {"color": BLACK, "label": "perfect model", "linewidth": 0.9},
}
SIZES = (VERMILION, ORANGE, GREEN, PURPLE, SKY)


def draw_curves(records: Sequence[Record], methods: Sequence[str]) -> Figure:
    """Normalised return along training, one task beside the other."""
    envs = tasks_of(records)
    figure = Figure(figsize=(3.3 * len(envs), 3.3), layout="constrained")
    panels = figure.subplots(1, len(envs), sharey=True, squeeze=False)[0]
    for axes, env in zip(panels, envs, strict=True):
        for method in methods:
            own = [r for r in records if (r.method, r.setting) == (method, env)]
            if own:
                steps, returns = mean_curve(own)
                _plot(axes, steps, returns, STYLES[method])
        axes.set(title=TASKS[env].title, xlabel="environment steps")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set(ylabel="normalised return")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def draw_interquartile(records: Sequence[Record], methods: Sequence[str]) -> Figure | None:
    """The interquartile mean of each method; None if no method has all that it takes."""
    envs = tasks_of(records)
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
        colour = STYLES[method]["color"]
        axes.barh(place, summary.high - summary.low, 0.6, summary.low, color=colour, alpha=0.35)
        axes.plot([summary.estimate] * 2, [place - 0.3, place + 0.3], color=colour)
    axes.set_yticks(range(len(found)), [STYLES[method]["label"] for method in found])
    axes.invert_yaxis()
    axes.set(xlabel="interquartile mean, 95 % interval")
    axes.set_xlim(left=0)
    return figure


def draw_efficiency(records: Sequence[Record]) -> Figure:
    """Normalised return by environment steps, and by seconds of training."""
    figure = Figure(figsize=(7.5, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    kinds = sorted({(record.method != "losse", record.setting) for record in records})
    for k, (replays, size) in enumerate(kinds):
        own = [r for r in records if (r.method != "losse", r.setting) == (replays, size)]
        label = f"coreset of {size:g}" if replays and isinstance(size, int | float) else "Losse"
        style = {"color": SIZES[(k - 1) % len(SIZES)] if replays else BLUE, "label": label}
        steps, returns = mean_curve(own)
        _plot(left, steps, returns, style)
        seconds = np.array([r.details["cpu_seconds"] for r in own])[:, :, 1].mean(axis=0)
        _plot(right, seconds, returns, style)
    left.set(title="By samples", xlabel="environment steps", ylabel="normalised return")
    right.set(title="By time", xlabel="seconds on the processor")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _plot(axes: Axes, x: Any, returns: Any, style: dict[str, Any]) -> None:
    mean, error = mean_and_error(returns)
    axes.plot(x, mean, **style)
    axes.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0)
