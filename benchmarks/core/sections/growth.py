"""Growth of the cost of a row, and of memory, with the number of rows learned, to a million.

The first rows are learned one after the other. Then a model is merged with a copy of itself, over
and over, which doubles the number of its rows in the time of one solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core.context import Bench, Solver
from benchmarks.core.peak_memory import resident
from benchmarks.core.sections.exact_30 import BATCH
from benchmarks.core.sections.update_30 import N_GRIDS
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Timings, clock

LEARNED = (1_000, 3_000, 10_000)
"""Rows that are learned before the cost of the next ones is taken."""
DOUBLINGS = 7
TIMED = {"sparse": 400, "exact": 400, "dense": 4 * BATCH, "yardstick": 60}
"""Rows that are timed at each number."""
SOLVERS: tuple[Solver, ...] = ("sparse", "exact", "dense")
JUDGED_FROM = 10_000
"""Rows from which `exact` no longer works in sample space, and all of A has been touched."""
LABELS = {
    "yardstick": "the paper's update",
    "dense": "dense, batches of 25",
    "exact": "exact, batches of 25",
    "sparse": "sparse, row by row",
}


def run(bench: Bench) -> Outcome:
    """Cost per row at growing numbers of rows, beside that of the yardstick at the same time.

    Dividing by the yardstick's cost, which is always the same, cancels the machine's own drift.
    """
    models = {solver: bench.model(N_GRIDS, solver) for solver in SOLVERS}
    contenders = [
        bench.learning("sparse", models["sparse"]),
        bench.learning("exact", models["exact"], BATCH),
        bench.learning("dense", models["dense"], BATCH),
        bench.learning("yardstick", bench.yardstick(N_GRIDS)),
    ]
    contenders[-1].task(0, 2)
    costs: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    numbers, memory, seen = [], [], 0
    for stage in range(len(LEARNED) + DOUBLINGS):
        for contender, model in zip(contenders, models.values(), strict=False):
            if stage < len(LEARNED):
                contender.task(seen, LEARNED[stage])
            else:
                model.merge(deepcopy(model))
        seen = LEARNED[stage] if stage < len(LEARNED) else seen
        numbers.append(models["sparse"].n_samples_seen_)
        for contender in contenders:
            taken = Timings()
            clock(contender, seen, seen + TIMED[contender.name], taken)
            costs[contender.name].append(taken.mean)
        seen += max(TIMED.values())
        memory.append(resident("VmRSS"))
        bench.step(f"{numbers[-1]:,} rows")
    return Outcome(
        measures=[growth(solver, numbers, costs) for solver in SOLVERS],
        details={"rows": numbers, "seconds_per_row": costs, "resident_bytes": memory},
        curve=list(zip(map(float, numbers), costs["sparse"], strict=True)),
    )


def growth(name: str, marks: Sequence[int], costs: dict[str, list[float]]) -> Measure:
    """Cost at the last number over that at the first judged one, relative to the yardstick."""
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
