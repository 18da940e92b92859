"""Cost of the recommended model, with all that it does besides learning.

It builds its encoder several times while it is young, and compares ridges all its life. Both happen
within calls that also learn 25 rows, so the mean over a long stream counts them, and the longest
call shows them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.core.context import Bench
from benchmarks.core.sections.exact_30 import BATCH
from benchmarks.core.sections.update_30 import N_GRIDS
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Timings, clock, split
from losse import AdaptiveEncoder, FTLRegressor

CHUNK = 1_000
YARDSTICK_ROWS = 30  # timed beside each chunk
LOADED = 3_000
"""Rows with which kernels are loaded, or compiled, before anything is timed."""
BUILT = AdaptiveEncoder().warm_up
"""Rows after which the encoder stays as it is."""


def run(bench: Bench) -> Outcome:
    """Processor time per row beside the paper's update of 30 grids, over a whole stream."""
    ours = bench.learning("recommended", FTLRegressor(), BATCH)
    yardstick = bench.learning("yardstick", bench.yardstick(N_GRIDS))
    loading = bench.learning("", FTLRegressor(), BATCH)
    for first, last in split(0, LOADED, BATCH):
        loading.task(first, last)
    yardstick.task(0, 2)

    costs: dict[str, list[float]] = {"recommended": [], "yardstick": []}
    longest = 0.0
    chunks = split(0, bench.budget.recommended_rows, CHUNK)
    for turn, (first, last) in enumerate(chunks):
        for contender in (ours, yardstick) if turn % 2 == 0 else (yardstick, ours):
            stop = last if contender is ours else first + YARDSTICK_ROWS
            taken = Timings()
            clock(contender, first, stop, taken)
            costs[contender.name].append(taken.mean)
            if contender is ours:
                longest = max(longest, BATCH * max(taken.per_row))
        bench.step(f"{last:,} rows")

    ends = [last for _, last in chunks]
    measures = [
        _measure("all rows, with every build of the encoder", costs, slice(None), "<= 1"),
        Measure("recommended model, longest call (builds the encoder)", ours=duration(longest)),
    ]
    later = [k for k, end in enumerate(ends) if end > BUILT + CHUNK]
    if len(later) > 3:
        half = len(later) // 2
        early, late = slice(later[0], later[half]), slice(later[half], None)
        name = "once the encoder is built"
        measures.append(_measure(name, costs, slice(later[0], None), "<= 1"))
        growth = _ratio(costs, late) / _ratio(costs, early)
        measures.append(
            Measure(
                "recommended model, growth, last / first half since",
                "",
                ratio=growth,
                target="<= 1.1",
            )
        )
    return Outcome(
        measures=measures,
        details={"rows": ends, "seconds_per_row": costs},
        curve=list(zip(map(float, ends), costs["recommended"], strict=True)),
    )


def _measure(what: str, costs: dict[str, list[float]], part: slice, target: str) -> Measure:
    return Measure(
        f"recommended model, batches of 25, {what}, processor time",
        ours=duration(float(np.mean(costs["recommended"][part]))),
        reference=duration(float(np.mean(costs["yardstick"][part]))),
        ratio=_ratio(costs, part),
        target=target,
    )


def _ratio(costs: dict[str, list[float]], part: slice) -> float:
    return float(np.mean(costs["recommended"][part]) / np.mean(costs["yardstick"][part]))
