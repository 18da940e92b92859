"""Figures of planning: returns along runs, and performance on each task after each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from losse.runs.record import Record
from losse.runs.style import Style, plot_means, style_of
from losse.runs.table import means_of

DYNA = Style("Dyna with Losse", "#E69F00", "-.")


def draw_curves(
    records: Sequence[Record], methods: Sequence[str], titles: Mapping[str, str]
) -> Figure:
    """Normalised return along the run, one task beside the other; a limit is a line across."""
    figure = Figure(figsize=(3.0 * len(titles), 3.3), layout="constrained")
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    lines = {}
    for axes, (env, title) in zip(panels, titles.items(), strict=True):
        for method in methods:
            own = [r for r in records if (r.method, r.setting) == (method, env)]
            if not own:
                continue
            style = (DYNA if method == "dyna" else style_of(method)).line()
            curves = np.array([record.curve for record in own], dtype=np.float64)
            if method == "oracle":
                level = float(np.mean([record.score for record in own]))
                lines[method] = axes.axhline(level, linewidth=0.9, **style)
            else:
                returns = means_of(curves[:, :, 1])
                plot_means(axes, curves[0, :, 0], returns, positive=False, **style)
                lines[method] = axes.get_lines()[-1]
        axes.set(title=title, xlabel="environment steps")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set(ylabel="normalised return of episodes")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=5)
    return figure


def draw_tasks(
    panels: Mapping[str, tuple[Sequence[str], Mapping[str, npt.NDArray[np.float64]]]],
) -> Figure:
    """Performance on each task after each task: a row for each world, a panel for each task.

    A panel's curves are (runs, tasks learned, tasks); a line marks when the task itself is learned.
    """
    width = max(len(names) for names, _ in panels.values())
    size = (2.6 * width, 2.4 * len(panels) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    rows = figure.subplots(len(panels), width, sharey="row", squeeze=False)
    lines = {}
    for row, (world, (names, curves)) in zip(rows, panels.items(), strict=True):
        for k, (axes, name) in enumerate(zip(row, names, strict=False)):
            axes.axvline(k + 1, color="0.8", linewidth=4, zorder=0)
            for method, values in curves.items():
                own = means_of(values[:, :, k])
                learned = np.arange(1, values.shape[1] + 1)
                plot_means(axes, learned, own, positive=False, **style_of(method).line())
                lines[method] = axes.get_lines()[-1]
            axes.set(title=f"{world}: {name}", xticks=range(1, len(names) + 1))
        row[0].set(ylabel="performance")
    for axes in rows[-1]:
        axes.set(xlabel="tasks learned")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=5)
    return figure
