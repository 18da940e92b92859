"""Times and bytes of learning on a cluster: rows, copies of models, merging, and whole fits."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from losse import FTLRegressor, LosseEncoder
from losse._kernels.block import INSTRUCTIONS
from losse.distributed import fit
from losse.distributed.blocks import Block, Columns
from losse.distributed.cluster import connected
from losse.distributed.share import begin, learn
from losse.ftl import merge_all
from losse.runs.record import Record
from losse.typing import Array

N_GRIDS = {"square": 30, "packed": 70}
"""The paper's grids of 121 cells: 3,630 features, and 8,470, whose memory is one triangle."""
WIDTHS = 16, 13
"""Numbers of inputs and targets: 12 states and 4 actions, and the change, with the reward."""
INCREMENTS = 50, 500, 5_000
"""Rows between two syncs."""
BLOCK = 4_096
ADDED = 8
"""Models that are added to one to time it: one alone is lost in the time of solving."""


class Job(NamedTuple):
    """One model to measure."""

    memory: str
    rows: int
    workers: tuple[int, ...]
    preset: str
    seed: int

    @property
    def options(self) -> dict[str, Any]:
        """Everything that decides the figures."""
        return {
            "memory": self.memory,
            "rows": self.rows,
            "block": BLOCK,
            "inputs": WIDTHS[0],
            "outputs": WIDTHS[1],
            "preset": self.preset,
            "instructions": INSTRUCTIONS,
            "cores": len(os.sched_getaffinity(0)),
        }


def measure(job: Job, say: Callable[[str], None]) -> Record:
    """Measure one model; the score is the rate of one process, in rows per second."""
    began = time.perf_counter()
    X, Y = transitions(job.rows, job.seed)
    encoder = LosseEncoder(N_GRIDS[job.memory], seed=job.seed, scaling=(-3, 3)).fit(X)
    regressor = FTLRegressor(encoder, ridge=1e-4)
    parts = [(X[k : k + BLOCK], Y[k : k + BLOCK]) for k in range(0, len(X), BLOCK)]
    blocks = [Block(f"block {k}", part) for k, part in enumerate(parts)]
    start, *_ = begin(regressor, Columns(), blocks[:1])
    say("one process")
    model: Any
    alone, (model, n) = timed(lambda: learn(start, None, blocks[1:]))
    say("copies and merging")
    details: dict[str, Any] = {
        "features": encoder.dimension,
        "active": encoder.n_active,
        "row": alone / n,
        **costs(model),
        "increments": [increment(start.regressor, model, X, Y, m) for m in INCREMENTS],
    }
    with connected("local", max(job.workers)):
        fit(parts[:2], regressor, n_workers=max(job.workers), sample_rows=1)  # starts processes
        for workers in job.workers:
            say(f"{workers} workers")
            call = partial(fit, parts, regressor, n_workers=workers, sample_rows=1)
            details[f"fit{workers}"], _ = timed(call, time.perf_counter)
    return Record(
        experiment="bench-distributed", method="losse", setting=job.memory, seed=job.seed,
        score=n / alone, settings=job.options, details=details,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def transitions(n: int, seed: int) -> tuple[Array, Array]:
    """Made-up rows of a smooth plant."""
    rng = np.random.default_rng(seed)
    inputs, outputs = WIDTHS
    X = rng.uniform(-3, 3, (n, inputs))
    return X, np.tanh(X @ rng.normal(size=(inputs, outputs)) / 4)


def costs(model: FTLRegressor) -> dict[str, float]:
    """Seconds for writing, reading and merging a model, and its bytes as it travels."""
    write, data = timed(lambda: pickle.dumps(model, protocol=5))
    read, other = timed(lambda: pickle.loads(data))
    solve, _ = timed(lambda: merge_all([model]))
    several, _ = timed(lambda: merge_all([model, *[other] * ADDED]))
    return {
        "bytes": len(data),
        "write": write,
        "read": read,
        "merge": max(0.0, several - solve) / ADDED,
        "solve": solve,
    }


def increment(
    empty: FTLRegressor, whole: FTLRegressor, X: Array, Y: Array, m: int
) -> Mapping[str, float]:
    """Cost of a sync after some rows, whose sums travel or themselves."""
    m = min(m, len(X))
    fresh = FTLRegressor(**empty.get_params(deep=False))
    seconds, sums = timed(lambda: fresh.partial_fit(X[:m], Y[:m]))
    return {
        "rows": m,
        "learn": seconds,
        "sums": len(pickle.dumps(sums, protocol=5)),
        "themselves": len(pickle.dumps((X[:m], Y[:m]), protocol=5)),
        "merge": timed(lambda: merge_all([whole, sums]))[0],
    }


def timed(
    function: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Seconds of a call, by default those of the processor, and what it returns."""
    began = clock()
    result = function()
    return clock() - began, result


def on_paper(details: Mapping[str, Any], rows: int, workers: Sequence[int]) -> dict[int, float]:
    """Seconds that a fit would take with so many workers, from its measured parts.

    All workers are free and equal, and share no core. Each learns its rows, and copies its model
    once for every task of eight blocks. Then come the levels of the tree, in each of which a task
    reads and adds four models, solves, and writes one.
    """
    from losse.distributed.data import FAN_IN

    copies = details["write"] + details["read"]
    level = FAN_IN * (details["read"] + details["merge"]) + details["solve"] + details["write"]
    found = {}
    for n in workers:
        tasks = -(-rows // (8 * BLOCK * n))
        levels, left = 1, n
        while left > FAN_IN:
            levels, left = levels + 1, -(-left // FAN_IN)
        found[n] = rows / n * details["row"] + tasks * copies + levels * level
    return found
