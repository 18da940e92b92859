"""Cost of the recommended model's predictions beside a network's, and of standard deviations."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.contenders.networks import initialise, outputs
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
    network = initialise(np.random.default_rng(0), X.shape[1], Y.shape[1])
    single = bench.single.inputs
    contenders = [
        Contender("network", lambda i, j: np.asarray(outputs(network, single[i:j])), ROWS),
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
    mean, std, other = (timings[name] for name in ("predict", "return_std", "network"))
    return Outcome(
        measures=[
            Measure(
                "recommended model, predict / network of 4 x 400 in JAX, batches of 1,000",
                duration(mean.median),
                duration(other.median),
                mean.median / other.median,
                mean.mean / other.mean,
                "<= 1",
            ),
            Measure(
                "recommended model, predict, batches of 1,000, microseconds for a row",
                duration(mean.median),
                ratio=1e6 * mean.median,
                total_ratio=1e6 * mean.mean,
                target="<= 6",
            ),
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
