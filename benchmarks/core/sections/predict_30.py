"""Speed of predictions at 30 grids."""

from __future__ import annotations

from benchmarks.core.context import Bench, Dtype
from benchmarks.core.sections.update_30 import DTYPES, N_GRIDS
from benchmarks.measures import Outcome, speedup
from benchmarks.timing import Contender, split, take_turns

LEARNED = 500
BATCHES = {1_000: ">= 10", 100_000: ">= 15"}
"""Rows in a call, and the target."""


def run(bench: Bench) -> Outcome:
    """Batches of 1,000 and of 100,000 rows, in both precisions."""
    bench.step("learning")
    yardstick = bench.yardstick(N_GRIDS)
    bench.learning("", yardstick, LEARNED).task(0, LEARNED)
    contenders = [Contender("yardstick", lambda i, j: yardstick.predict(bench.single.inputs[i:j]))]
    for dtype in DTYPES:
        contenders.append(predicting(bench, dtype))

    measures, details = [], {}
    for batch, goal in BATCHES.items():
        for contender in contenders:
            contender.stride = batch
        take_turns(contenders, [(0, batch)])
        # As many calls as fill the time: one large batch lasts as long as a hundred small ones.
        chunks = split(0, 100_000, max(batch, 10_000)) * bench.budget.predict_repeats
        bench.step(f"batches of {batch:,}")
        timings = take_turns(contenders, chunks)
        for dtype in DTYPES:
            name = f"predict, 30 grids, {dtype}, batches of {batch:,}"
            target = goal if dtype == "float64" else ""
            measures.append(speedup(name, timings[dtype], timings["yardstick"], target))
        details[f"batch_{batch}"] = {name: t.summary() for name, t in timings.items()}
    return Outcome(measures, details)


def predicting(bench: Bench, dtype: Dtype) -> Contender:
    """A model of ours that has learned a little."""
    model = bench.model(N_GRIDS, "sparse", dtype)
    bench.learning("", model, LEARNED).task(0, LEARNED)
    return Contender(dtype, lambda i, j: model.predict(bench.rows.inputs[i:j]))
