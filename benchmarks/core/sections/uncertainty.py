"""Cost of standard deviations beside that of predictions, for the recommended model."""

from __future__ import annotations

from benchmarks.core.context import Bench
from benchmarks.core.sections.exact_30 import BATCH
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Contender, Timings, clock, split, take_turns
from losse import FTLRegressor

LEARNED = 3_000
ROWS = 1_000
UPDATES = 10


def run(bench: Bench) -> Outcome:
    """Batches of 1,000 rows, and one row after every update."""
    bench.step("learning")
    X, Y = bench.rows
    model = FTLRegressor()
    for first, last in split(0, LEARNED, 250):
        model.partial_fit(X[first:last], Y[first:last])
    model.predict(X[:ROWS], return_std=True)
    contenders = [
        Contender("predict", lambda i, j: model.predict(X[i:j]), ROWS),
        Contender("return_std", lambda i, j: model.predict(X[i:j], return_std=True), ROWS),
    ]
    repeats = 3 * bench.budget.predict_repeats
    timings = take_turns(contenders, [(0, ROWS)] * repeats)
    after = Timings()
    asking = Contender("after", lambda i, j: model.predict(X[i:j], return_std=True))
    for first, last in split(LEARNED, LEARNED + UPDATES * BATCH, BATCH):
        model.partial_fit(X[first:last], Y[first:last])
        clock(asking, 0, 1, after)
    mean, std = timings["predict"], timings["return_std"]
    return Outcome(
        measures=[
            Measure(
                "recommended model, return_std / predict, batches of 1,000",
                duration(std.median),
                duration(mean.median),
                std.median / mean.median,
                std.mean / mean.mean,
                "<= 2",
            ),
            Measure(
                "recommended model, return_std of one row after an update of 25, milliseconds",
                duration(after.median),
                ratio=1e3 * after.median,
                total_ratio=1e3 * after.mean,
            ),
        ],
        details={"timings": {n: t.summary() for n, t in timings.items()} | {"a": after.summary()}},
    )
