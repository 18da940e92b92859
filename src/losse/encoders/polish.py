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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from losse._kernels.adam import adam_step
from losse._kernels.cascade import bend
from losse._kernels.simd import aligned, padded
from losse.encoders.cascade import BEND, Stage
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
# Operations that take as long as a step of one weight.
_STEP = 40.0

Single = npt.NDArray[np.float32]


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


class _Part(NamedTuple):
    """Weights of a stage, or their gradients: as in `Stage`, but apart."""

    directions: Single
    offsets: Single
    weights: Single
    affine: Single
    constant: Single


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
        self._V, self._width, self._Q, self._share = V, width, Q, share
        self._units = [stage.directions.shape[1] for stage in stages]
        self._widths = [(len(stage.directions), stage.weights.shape[1]) for stage in stages]
        size = sum(
            padded(m, np.float32) * (d + 1 + o) + (d + 1) * o
            for m, (d, o) in zip(self._units, self._widths, strict=True)
        )
        self._flat = aligned((4, size), np.float32)  # weights, Adam's averages, gradients
        self._own = self._parts(self._flat[0])
        self._gradients = self._parts(self._flat[3])
        # Units, two factors of their slopes, and gradients: new arrays would take a fifth longer.
        self._scratch = [aligned((4, JUDGED, len(part.offsets)), np.float32) for part in self._own]
        self._steps = 0
        for part, stage, m in zip(self._own, stages, self._units, strict=True):
            part.directions[:, :m] = stage.directions
            part.offsets[:m] = stage.offsets
            part.weights[:m] = stage.weights[:m]
            part.affine[:] = stage.weights[m:-1]
            part.constant[:] = stage.weights[-1]

    def _parts(self, flat: Single) -> list[_Part]:
        parts, at = [], 0
        for m, (d, o) in zip(self._units, self._widths, strict=True):
            M, arrays = padded(m, np.float32), []
            for shape in ((d, M), (M,), (M, o), (d, o), (o,)):
                size = int(np.prod(shape))
                arrays.append(flat[at : at + size].reshape(shape))
                at += size
            parts.append(_Part(*arrays))
        return parts

    def stages(self) -> list[Stage]:
        """The stages as they are now."""
        return [
            Stage(
                part.directions[:, :m].astype(float),
                part.offsets[:m].astype(float),
                np.vstack([part.weights[:m], part.affine, part.constant]).astype(float),
            )
            for part, m in zip(self._own, self._units, strict=True)
        ]

    def error(self, rows: npt.NDArray[np.int64]) -> Work[float]:
        """Mean squared error of some rows."""
        total = 0.0
        for first in range(0, len(rows), JUDGED):
            some = rows[first : first + JUDGED]
            V = self._V[some]
            Z = V[:, : self._width]
            for part, scratch in zip(self._own, self._scratch, strict=True):
                U = _forward(part, V, scratch[:, : len(V)])
                V = np.hstack([Z, U])
            total += float(self._share[some] @ ((U - self._Q[some]) ** 2).mean(axis=1))
            yield 1.6 * self._cost(len(some))
        return total / float(self._share[rows].sum())

    def step(self, rows: npt.NDArray[np.int64], rate: float) -> float:
        """Take a step for some rows; its cost."""
        width, V, kept = self._width, self._V[rows], []
        Z = V[:, :width]
        for part, scratch in zip(self._own, self._scratch, strict=True):
            kept.append((V, scratch[:, : len(V)]))
            U = _forward(part, *kept[-1])
            V = np.hstack([Z, U])
        G = (U - self._Q[rows]) * (self._share[rows] * np.float32(2.0 / U.size))[:, None]
        for part, into, (V, (F, outer, inner, back)) in zip(
            self._own[::-1], self._gradients[::-1], kept[::-1], strict=True
        ):
            np.matmul(F.T, G, out=into.weights)
            np.matmul(V.T, G, out=into.affine)
            np.sum(G, axis=0, out=into.constant)
            np.matmul(G, part.weights.T, out=back)
            back *= outer
            np.sum(back, axis=0, out=into.offsets)
            back *= inner
            np.matmul(V.T, back, out=into.directions)
            G = back @ part.directions[width:].T + G @ part.affine[width:].T
        self._steps += 1
        w, mean, square, gradient = self._flat
        adam_step(w, mean, square, gradient, rate, self._steps)
        return 3 * self._cost(len(rows)) + _STEP * len(w)

    def _cost(self, rows: int) -> float:
        return rows * sum(
            padded(m, np.float32) * (BEND + 2.0 * (d + o))
            for m, (d, o) in zip(self._units, self._widths, strict=True)
        )


def _forward(part: _Part, V: Single, scratch: Single) -> Single:
    """Outputs of a stage; its units and the two factors of their slopes go to ``scratch``."""
    F, outer, inner, _ = scratch
    np.matmul(V, part.directions, out=F)
    bend(F, part.offsets, outer, inner)
    return np.asarray(F @ part.weights + V @ part.affine + part.constant)
