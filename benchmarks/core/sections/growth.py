"""Growth of the cost of a row, and of memory, with the number of rows learned.

The transitions are learned again and again until there are enough. On the way to each mark they
come in large batches, whose time does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core.context import ALL_ROWS, Bench
from benchmarks.core.peak_memory import resident
from benchmarks.core.sections.exact_30 import BATCH
from benchmarks.core.sections.update_30 import N_GRIDS
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Contender, Timings, clock

GAP = 10_000  # rows at once on the way to a mark
TIMED = {"sparse": 400, "exact": 400, "dense": 4 * BATCH, "yardstick": 60}
"""Rows that are timed at each mark."""
JUDGED_FROM = 10_000
"""Rows from which `exact` no longer works in sample space, and all of A has been touched."""
LABELS = {
    "yardstick": "the paper's update",
    "dense": "dense, batches of 25",
    "exact": "exact, batches of 25",
    "sparse": "sparse, row by row",
}


def run(bench: Bench) -> Outcome:
    """Cost per row at each mark, beside that of the yardstick at the same time.

    Dividing by the yardstick's cost, which is the same at all marks, cancels the machine's own
    drift.
    """
    contenders = [
        bench.learning("sparse", bench.model(N_GRIDS, "sparse")),
        bench.learning("exact", bench.model(N_GRIDS, "exact"), BATCH),
        bench.learning("dense", bench.model(N_GRIDS, "dense"), BATCH),
        bench.learning("yardstick", bench.yardstick(N_GRIDS)),
    ]
    marks = bench.budget.growth_marks
    costs: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    memory, seen = [], 0
    for mark in marks:
        for contender in contenders:
            if contender.name != "yardstick":
                advance(contender, seen, mark)
            bench.step(f"{contender.name} to {mark:,} rows")
        seen = mark + max(TIMED.values())
        for contender in contenders:
            taken = Timings()
            first = mark % (ALL_ROWS - GAP)
            clock(contender, first, first + TIMED[contender.name], taken)
            costs[contender.name].append(taken.mean)
        memory.append(resident("VmRSS"))
    return Outcome(
        measures=[growth(name, marks, costs) for name in TIMED if name != "yardstick"],
        details={"rows": marks, "seconds_per_row": costs, "resident_bytes": memory},
        curve=list(zip(map(float, marks), costs["sparse"], strict=True)),
    )


def advance(contender: Contender, seen: int, mark: int) -> None:
    """Learn rows up to a mark in large batches."""
    while seen < mark:
        count = min(GAP, mark - seen)
        first = seen % (ALL_ROWS - GAP)
        contender.task(first, first + count)
        seen += count


def growth(name: str, marks: tuple[int, ...], costs: dict[str, list[float]]) -> Measure:
    """Cost at the last mark over that at the first judged one, both relative to the yardstick."""
    judged = next((k for k, mark in enumerate(marks) if mark >= JUDGED_FROM), 0)
    early, late = (costs[name][k] / costs["yardstick"][k] for k in (judged, -1))
    return Measure(
        f"growth, 30 grids, {LABELS[name]}, {marks[-1]:,} / {marks[judged]:,} rows",
        ours=duration(costs[name][-1]),
        reference=duration(costs[name][judged]),
        ratio=late / early,
        target="<= 1.1" if marks[judged] >= JUDGED_FROM and judged < len(marks) - 1 else "",
    )


def draw(details: Mapping[str, Any], path: Path) -> None:
    """The costs over the number of rows, as a figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from losse.runs.style import BLACK, RC, style_of

    styles = {
        "yardstick": {"color": BLACK, "linestyle": "--"},
        "dense": {"color": "0.5"},
        "exact": style_of("losse-exact").line(),
        "sparse": style_of("losse").line(),
    }
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = figure.subplots()
        for name, costs in details["seconds_per_row"].items():
            line = styles[name] | {"label": LABELS[name]}
            axes.plot(details["rows"], 1000 * np.array(costs), marker=".", **line)
        axes.set(xlabel="rows learned", ylabel="milliseconds per row", xscale="log", yscale="log")
        axes.legend()
        figure.savefig(path, dpi=150)
