"""Distance of `exact` from the optimum after every batch, and its cost."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from benchmarks.core.context import RIDGE, Bench
from benchmarks.core.sections.update_30 import N_GRIDS
from benchmarks.measures import Measure, Outcome, duration
from benchmarks.timing import Contender, split, take_turns

BATCH = 25
CHUNK = 100
ALGORITHM_2_ROWS = (1_000, 2_000, 3_000, 8_000)


def run(bench: Bench) -> Outcome:
    """Time the batches first, keeping the weights; judge the weights afterwards."""
    model, yardstick = bench.model(N_GRIDS, "exact"), bench.yardstick(N_GRIDS)
    inputs, targets = bench.rows
    rows = bench.budget.exact_rows
    kept: dict[int, NDArray[np.float64]] = {}

    def learn(first: int, last: int) -> None:
        model.partial_fit(inputs[first:last], targets[first:last])
        if last % bench.budget.exact_check_every == 0:
            kept[last] = model.weights_

    contenders = [Contender("exact", learn, BATCH), bench.learning("yardstick", yardstick)]
    bench.step("compiling")
    yardstick.learn(*(part[:2] for part in bench.single))
    warm = bench.model(N_GRIDS, "exact")
    bench.learning("", warm).task(0, BATCH)
    del warm

    chunks = split(0, rows, CHUNK)
    timings = take_turns(contenders, chunks, lambda n: bench.step(f"learning, {n:,} rows"))
    del yardstick
    curve = judge(bench, kept)
    block_update = judge(bench, algorithm_2(bench, [n for n in ALGORITHM_2_ROWS if n <= rows]))
    worst = max(ratio for _, ratio in curve)
    ours, theirs = timings["exact"], timings["yardstick"]
    return Outcome(
        measures=[
            Measure(
                f"exact, 30 grids, worst objective / optimum to {rows:,} rows",
                ours=f"{worst:.5f}",
                reference="1",
                ratio=worst,
                target="<= 1.01",
            ),
            Measure(
                "exact, 30 grids, batches of 25, cost / yardstick's cost",
                ours=duration(ours.mean),
                reference=duration(theirs.mean),
                ratio=ours.median / theirs.median,
                total_ratio=ours.mean / theirs.mean,
                target="<= 1",
            ),
            *(
                Measure(
                    f"sparse (Algorithm 2), 30 grids, objective / optimum after {int(n):,} rows",
                    ours=f"{ratio:.2f}",
                    reference="1",
                    ratio=ratio,
                )
                for n, ratio in block_update
            ),
        ],
        details={"timings": {name: t.summary() for name, t in timings.items()}},
        curve=curve,
    )


def algorithm_2(bench: Bench, marks: list[int]) -> dict[int, NDArray[np.float64]]:
    """Weights of the paper's block update after some numbers of rows."""
    model, (inputs, targets) = bench.model(N_GRIDS, "sparse"), bench.rows
    kept = {}
    for first, last in zip([0, *marks], marks, strict=False):
        model.partial_fit(inputs[first:last], targets[first:last])
        kept[last] = model.weights_
    return kept


def judge(bench: Bench, kept: dict[int, NDArray[np.float64]]) -> list[tuple[float, float]]:
    """Objective over optimum at each kept n; the optimum by a Cholesky of A + ridge n I."""
    inputs, targets = bench.rows
    encoder = bench.encoder(N_GRIDS).fit(inputs[:1])
    features = encoder.transform(inputs[: max(kept)])
    d = features.shape[1]
    A, B = np.zeros((d, d)), np.zeros((d, targets.shape[1]))
    done, curve = 0, []
    for n, weights in kept.items():
        new, y = features[done:n], targets[done:n]
        A += (new.T @ new).toarray()
        B += new.T @ y
        done = n
        system = A.copy()
        system[np.diag_indices(d)] += RIDGE * n
        factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        optimum = scipy.linalg.cho_solve(factor, B, check_finite=False)

        def objective(W: NDArray[np.float64], n: int = n) -> float:
            residual = targets[:n] - features[:n] @ W
            return float(np.sum(residual**2) + RIDGE * n * np.sum(W**2))

        curve.append((float(n), objective(weights) / objective(optimum)))
        bench.step(f"checking the optimum, {n:,} rows")
    return curve
