"""Growth of the cost of a row with the number of rows learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core.context import Bench
from benchmarks.core.sections.exact_30 import BATCH
from benchmarks.core.sections.update_30 import N_GRIDS
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Timings, clock, split

CHUNK = 1_000
YARDSTICK_ROWS = 30  # timed beside each chunk
JUDGED_FROM = 50_000
LABELS = {
    "yardstick": "the paper's update",
    "exact": "exact, batches of 25",
    "sparse": "sparse, row by row",
}


def run(bench: Bench) -> Outcome:
    """Cost per row in chunks; the last quarter of the run against the second quarter.

    The first quarter is left out: A's memory is still being touched for the first time, and
    `exact` works in sample space.  Both quarters are divided by the yardstick's cost at the same
    time, which cancels the machine's own drift.  A short run is drawn but not judged.
    """
    yardstick = bench.yardstick(N_GRIDS)
    contenders = [
        bench.learning("sparse", bench.model(N_GRIDS, "sparse")),
        bench.learning("exact", bench.model(N_GRIDS, "exact"), BATCH),
        bench.learning("yardstick", yardstick),
    ]
    for warm in ("sparse", "exact"):
        bench.learning("", bench.model(N_GRIDS, warm)).task(0, BATCH)
    contenders[-1].task(0, 2)

    costs: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    chunks = split(0, bench.budget.growth_rows, CHUNK)
    for turn, (first, last) in enumerate(chunks):
        for contender in contenders if turn % 2 == 0 else reversed(contenders):
            stop = first + YARDSTICK_ROWS if contender.name == "yardstick" else last
            taken = Timings()
            clock(contender, first, stop, taken)
            costs[contender.name].append(taken.mean)
        bench.step(f"{last:,} rows")

    ends = [last for _, last in chunks]
    return Outcome(
        measures=[
            growth(name, costs, "<= 1.1" if ends[-1] >= JUDGED_FROM else "")
            for name in ("sparse", "exact")
        ],
        details={"rows": ends, "seconds_per_row": costs},
        curve=list(zip(map(float, ends), costs["sparse"], strict=True)),
    )


def growth(name: str, costs: dict[str, list[float]], target: str) -> Measure:
    """Cost in the last quarter over cost in the second, both relative to the yardstick."""
    quarter = len(costs[name]) // 4
    second, last = slice(quarter, 2 * quarter), slice(-quarter, None)

    def mean(which: str, part: slice) -> float:
        return float(np.mean(costs[which][part]))

    ratio = mean(name, last) / mean("yardstick", last)
    ratio /= mean(name, second) / mean("yardstick", second)
    return Measure(
        f"growth, 30 grids, {LABELS[name]}, last / second quarter",
        ours=duration(mean(name, last)),
        reference=duration(mean(name, second)),
        ratio=ratio,
        target=target,
    )


def draw(details: Mapping[str, Any], path: Path) -> None:
    """The costs over the number of rows, as a figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from losse.runs.style import BLACK, RC, style_of

    styles = {
        "yardstick": {"color": BLACK, "linestyle": "--"},
        "exact": style_of("losse-exact").line(),
        "sparse": style_of("losse").line(),
    }
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = figure.subplots()
        for name, label in LABELS.items():
            costs = 1000 * np.array(details["seconds_per_row"][name])
            axes.plot(np.array(details["rows"]) / 1000, costs, **styles[name] | {"label": label})
        axes.set(xlabel="rows learned (thousands)", ylabel="milliseconds per row", ylim=(0, None))
        axes.legend()
        figure.savefig(path, dpi=150)
