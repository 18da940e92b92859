r"""Gradient steps on a cascade: what its closed form leaves to be gained.

Each stage of a cascade is the best for the predictions that it is given, but no stage is made so
that the next does well. Adam's steps on all stages together, from there on, make that good: they
halve the error of thousands of rows. Rows are visited some tens of times, in minibatches, while the
model goes on with its old encoder; once the stages are frozen, the leader fits all data again.

Rows held out in stretches, since neighbours are alike, say when to stop, and whether the steps have
been of use at all: of few rows, or of noise, they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from losse._kernels.adam import adam_step
from losse._kernels.descent import (
    Single,
    mean_gradients,
    new_scratch,
    new_weights,
    squared_error,
)
from losse.encoders.cascade import Stage
from losse.typing import Array
from losse.work import Work

LEAST_ROWS = 1000
"""Rows below which held-out ones say too little."""
HELD_OUT, STRETCH = 8, 50
"""One stretch of so many is held out, each of so many rows."""
MOST_HELD_OUT = 500
"""Rows held out at most, about: more would say little more, and are better learned."""
LEAST_WEIGHT = 0.15
"""Of held-out rows beside the others', on average: under a discount they may be long past."""
EPOCHS, BATCH, RATE, WARM_UP = 20, 64, 3e-3, 100
"""Visits of each row, rows of a step, the largest rate, and steps in which it is reached. Chosen on
Hopper-v5 and HalfCheetah-v5."""
CHECKS, JUDGED = 15, 256
"""How often the error on held-out rows is looked at, and of how many of them at once."""
# Operations that take as long as a unit, a product with one of its weights, a row's gradients
# beside its predictions, and Adam's step of a weight, where vectors have 256 bits.
_UNIT, _PRODUCT, _BACK, _STEP = 30.0, 0.8, 2.2, 15.0


def held_out(n: int) -> npt.NDArray[np.bool_]:
    """Which of n rows are not to be learned from, but tell how good what was learned is.

    >>> [int(held_out(n).sum()) for n in (999, 1000, 4000, 8000, 32000)]
    [0, 100, 500, 500, 500]
    """
    if n < LEAST_ROWS:
        return np.zeros(n, dtype=bool)
    one_in = max(HELD_OUT, n // MOST_HELD_OUT)
    return np.arange(n) // STRETCH % one_in == one_in - 1


def can_judge(out: npt.NDArray[np.bool_], weights: Array) -> bool:
    """Whether rows are held out, and weigh enough.

    >>> all(can_judge(held_out(n), np.ones(n)) for n in (1000, 8000, 32000, 200_000))
    True
    >>> can_judge(held_out(999), np.ones(999)), can_judge(held_out(1000), 0.9 ** np.arange(1000))
    (False, False)
    """
    return bool(out.any() and weights[out].mean() >= LEAST_WEIGHT * weights.mean())


def polish(
    stages: Sequence[Stage],
    V: Array,
    width: int,
    Q: Array,
    weights: Array,
    rng: np.random.Generator,
) -> Work[list[Stage]]:
    """Better stages, if held-out rows agree; else the same.

    The first stage sees V, the others its first ``width`` columns and the predictions of the one
    before. The stages must not have seen the rows of `held_out`.
    """
    out = held_out(len(V))
    if not stages or not can_judge(out, weights):
        return list(stages)
    share = (weights / weights.mean()).astype(np.float32)
    descent = _Descent(stages, V.astype(np.float32), width, Q.astype(np.float32), share)
    visited, judges = np.flatnonzero(~out), np.flatnonzero(out)
    per_epoch = max(1, len(visited) // BATCH)
    total = EPOCHS * per_epoch
    best, least = list(stages), (yield from descent.error(judges))
    last = 0
    for step in range(total):
        if step % per_epoch == 0:
            order = rng.permutation(visited)
        first = step % per_epoch * BATCH
        rate = RATE * min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + np.cos(np.pi * step / total))
        yield descent.step(order[first : first + BATCH], rate)
        check = (step + 1) * CHECKS // total
        if check > last:
            last = check
            error = yield from descent.error(judges)
            if not np.isfinite(error):
                break
            if error < least:
                best, least = descent.stages(), error
    return best


class _Descent:
    """Weights of all stages, one after the other, with the running averages of Adam."""

    def __init__(
        self, stages: Sequence[Stage], V: Single, width: int, Q: Single, share: Single
    ) -> None:
        self._given, self._width = (V, Q, share), width
        self._inputs = [len(stage.directions) for stage in stages]
        self._units, self._outputs = stages[0].directions.shape[1], Q.shape[1]
        self._flat, parts = new_weights(
            len(stages), max(self._inputs), self._units, self._outputs
        )  # weights, Adam's averages, gradients
        self._own, self._gradients = parts(0), parts(3)
        self._scratch = new_scratch(self._own, max(BATCH, JUDGED))
        self._steps = 0
        for stage, whole in zip(stages, self._parts(), strict=True):
            m = self._units
            W, L, constant = stage.weights[:m], stage.weights[m:-1], stage.weights[-1]
            given = stage.directions, stage.offsets, W, L, constant
            for part, values in zip(whole, given, strict=True):
                part[:] = values

    def _parts(self) -> list[tuple[Single, Single, Single, Single, Single]]:
        """For each stage its directions, offsets, weights, affine weights and constants."""
        m, o = self._units, self._outputs
        return [
            (P[:d, :m], c[:m], W[:m, :o], L[:d, :o], constant[:o])
            for d, P, c, W, L, constant in zip(self._inputs, *self._own, strict=True)
        ]

    def stages(self) -> list[Stage]:
        """The stages as they are now."""
        return [
            Stage(P.astype(float), c.astype(float), np.vstack([W, L, constant]).astype(float))
            for P, c, W, L, constant in self._parts()
        ]

    def error(self, rows: npt.NDArray[np.int64]) -> Work[float]:
        """Mean squared error of some rows."""
        total = 0.0
        for first in range(0, len(rows), JUDGED):
            some = rows[first : first + JUDGED]
            total += squared_error(self._own, *self._given, some, self._width, self._scratch)
            yield self._cost(len(some))
        return total / float(self._given[2][rows].sum())

    def step(self, rows: npt.NDArray[np.int64], rate: float) -> float:
        """Take a step for some rows; its cost."""
        into = self._gradients
        mean_gradients(self._own, into, *self._given, rows, self._width, self._scratch)
        self._steps += 1
        w, mean, square, gradient = self._flat
        adam_step(w, mean, square, gradient, rate, self._steps)
        return _BACK * self._cost(len(rows)) + _STEP * len(w)

    def _cost(self, rows: int) -> float:
        stages, inputs, units = self._own.directions.shape
        return rows * stages * units * (_UNIT + _PRODUCT * (inputs + self._own.constant.shape[1]))
