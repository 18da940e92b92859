"""Speed of Algorithm 2, row by row, at 30 grids."""

from __future__ import annotations

import numpy as np

from benchmarks.core.context import Bench, Dtype
from benchmarks.measures import Outcome, speedup
from benchmarks.timing import split, take_turns

N_GRIDS = 30
WARM_UP = 100
CHUNK = 100
DTYPES: tuple[Dtype, ...] = ("float64", "float32")
TARGETS = {
    "float64, row by row": ">= 4",
    "float64, one call": ">= 5",
    "float32, row by row": ">= 6",
    "float32, one call": ">= 8",
}


def run(bench: Bench) -> Outcome:
    """Row by row through ``partial_fit``, and whole chunks in one call, in both precisions."""
    yardstick = bench.yardstick(N_GRIDS)
    models = {
        f"{dtype}, {how}": bench.model(N_GRIDS, "sparse", dtype)
        for dtype in DTYPES
        for how in ("row by row", "one call")
    }
    contenders = [bench.learning("yardstick", yardstick)]
    for name, model in models.items():
        stride = CHUNK if name.endswith("one call") else 1
        contenders.append(bench.learning(name, model, stride))

    bench.step("compiling")
    for contender in contenders:
        contender.task(0, WARM_UP // 2)
    take_turns(contenders, [(WARM_UP // 2, WARM_UP)])
    chunks = split(WARM_UP, WARM_UP + bench.budget.update_rows, CHUNK)
    timings = take_turns(contenders, chunks, lambda n: bench.step(f"{n:,} rows"))

    # The same work was done: single precision separates the predictions a little.
    expected = yardstick.predict(bench.single.inputs[:1000])
    apart = {
        name: float(np.abs(model.predict(bench.rows.inputs[:1000]) - expected).max())
        for name, model in models.items()
    }
    return Outcome(
        measures=[
            speedup(
                f"update, 30 grids, {name}",
                timings[name],
                timings["yardstick"],
                TARGETS[name],
            )
            for name in models
        ],
        details={
            "timings": {name: t.summary() for name, t in timings.items()},
            "largest_difference_of_predictions": apart,
            "largest_prediction": float(np.abs(expected).max()),
        },
    )
