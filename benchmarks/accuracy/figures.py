"""Figures of `losse bench accuracy`: errors by rows and by time, forgetting, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.accuracy import summary
from benchmarks.accuracy.contenders.entries import ENTRIES
from benchmarks.accuracy.plan import LENGTH, TASKS, WHERE, environment_of, kind_of
from losse.runs.record import Record
from losse.runs.style import label_powers_of_ten, plot_means, style_of
from losse.runs.table import means_of


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """All figures that the records allow, by the stem of their files."""
    figures = {}
    of_tables = [r for r in records if kind_of(r.setting) == "tables"]
    if of_tables:
        figures["tables"] = _tables(of_tables)
    for kind in LENGTH:
        settings = [f"{environment} {kind}" for environment in WHERE[kind]]
        known = [s for s in settings if any(r.setting == s for r in records)]
        if known:
            figures[f"{kind}-by-rows"] = _errors(records, known, by_time=False)
            figures[f"{kind}-by-time"] = _errors(records, known, by_time=True)
        if known and kind == "tasks":
            figures["forgetting"] = _forgetting(records, known)
    return figures


def _errors(records: Sequence[Record], settings: Sequence[str], *, by_time: bool) -> Figure:
    """Test error against rows or time, a panel per stream."""
    figure, panels = _panels(settings)
    for axes, setting in panels:
        for contender in ENTRIES:
            own = summary.of(records, contender, setting)
            tests, seconds = summary.series(own, "test"), summary.series(own, "seconds")
            if tests:
                x = [seconds[n].mean for n in tests] if by_time else list(tests)
                plot_means(axes, x, list(tests.values()), **style_of(contender).marked())
        axes.set(xscale="log", yscale="log", title=setting.split()[0])
        label_powers_of_ten(axes.xaxis)
        axes.set_xlabel("Processor time of learning, s" if by_time else "Rows learned")
        axes.set_ylabel("Test nmse")
    _legend(figure)
    return figure


def _tables(records: Sequence[Record]) -> Figure:
    """Errors at the end, a line per table: on test rows, or of predictions ahead."""
    names = list(dict.fromkeys([*WHERE["tables"], *(environment_of(r.setting) for r in records)]))
    names = [n for n in names if any(environment_of(r.setting) == n for r in records)]
    figure = Figure(figsize=(6.8, 0.32 * len(names) + 1.6), layout="constrained")
    axes = figure.subplots()
    for contender in ENTRIES:
        own = {n: summary.of(records, contender, f"{n} tables") for n in names}
        at = [k for k, n in enumerate(names) if own[n]]
        if at:
            errors = [np.mean([r.score for r in own[names[k]]]) for k in at]
            axes.plot(errors, at, **style_of(contender).marked(linestyle="none"))
    axes.set(xscale="log", xlabel="Nmse at the end", yticks=range(len(names)), yticklabels=names)
    axes.invert_yaxis()
    axes.grid(axis="y", color="0.9")
    _legend(figure)
    return figure


def _forgetting(records: Sequence[Record], settings: Sequence[str]) -> Figure:
    """The error on the first task while the others are learned."""
    figure, panels = _panels(settings)
    for axes, setting in panels:
        for contender in ENTRIES:
            own = summary.of(records, contender, setting)
            if own:
                curves = np.array([[each[0] for _, each in r.details["tasks"]] for r in own])
                at = [n for n, _ in own[0].details["tasks"]]
                plot_means(axes, at, means_of(curves), **style_of(contender).marked(markersize=3))
        for k in range(1, TASKS):
            axes.axvline(LENGTH["tasks"] * k // TASKS, color="0.8", linewidth=0.8, zorder=0)
        axes.set(yscale="log", title=setting.split()[0], xlabel="Rows learned")
        axes.set_ylabel("Nmse on the first task")
    _legend(figure)
    return figure


def _panels(settings: Sequence[str]) -> tuple[Figure, list[tuple[Any, str]]]:
    """Panels in rows of three, or of two if that leaves none of them blank."""
    columns = 2 if len(settings) in (2, 4) else min(3, len(settings))
    rows = -(-len(settings) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.9 * rows + 0.9), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(settings) :]:
        axes.remove()
    return figure, list(zip(grid, settings, strict=False))


def _legend(figure: Figure) -> None:
    """One for all panels, with everyone who is in any of them."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [style_of(contender).label for contender in ENTRIES]
    ordered = [label for label in labels if label in handles]
    shown = [handles[label] for label in ordered]
    columns = max(2, round(figure.get_figwidth() / 2))
    figure.legend(shown, ordered, loc="outside lower center", ncols=columns)
