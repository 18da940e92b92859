r"""The inverse :math:`P = (A + \lambda_0 I)^{-1}`, kept current, for the leader of many samples.

A batch changes P by a matrix of low rank (Woodbury's identity, the recursive form of appendix B);
such changes are collected and pushed into P together.

The true lambda = ridge * total moves away from lambda_0 in the meantime, and with it the leader
from the weights. How far is known at all times: with d = lambda - lambda_0, the residual
R = B - (A + lambda I) W changes by -d times the step when W follows a batch, and the objective
exceeds its minimum by at most ||R||^2 / lambda. When that is more than `EXCESS` of the objective,
W descends with P as the preconditioner; since (A + lambda I) P is the identity but for d P, one
step removes most of the excess. When total has grown by `GROWTH`, P is made anew.

Unlearning is the same with the opposite sign, as long as what is left is a sum of squares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from losse._kernels.blas import add_product, solve_lower
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.deferred import MANY, Deferred
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.ftl.solvers.descent import PARTS, Descent
from losse.ftl.solvers.inversion import Inversion, SampleInversion, inverting
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import UNIT, Work, blocks, finished

GROWTH = 5.0
FARTHEST = 10.0
"""How far lambda may be from that of P at worst; see `TrackedInverse.off`."""
EXCESS, SOON = 0.008, 0.5
"""Share of the objective by which the weights may miss the leader, and share of that at which a
step towards it begins, a part for each row."""
SMALLEST_PIVOT = 1e-4
"""A batch whose unlearning divides by less than the square of this makes P anew."""
RIVAL, RIVAL_STEPS = 3e-3, 10
"""Excess of weights for a ridge that is on trial, and steps at most."""
SOME, FEW = 16, 2
"""Rows that tell what another lambda would make of leverages: of those learned, and of others."""
LEADER = 1e-14
"""Excess at which the weights count as the leader itself."""


class TrackedInverse:
    """P and the weights that follow the leader with its help."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        size = padded(memory.dimension)
        self._inverse = Deferred(aligned((size, size)), sign=-1.0)
        self.weights = aligned(memory.B.shape)
        self._residual = aligned(memory.B.shape)
        self._lambda = self._own_lambda = 0.0
        self.renewed = False
        """Whether P is another, or has followed many rows, since this was last set to False."""
        self.spent = 0.0
        """Cost of the last batch's share in steps of the weights."""
        self._unchecked = 0  # rows that it has followed since
        self._correction: Descent | None = None  # a step of the weights that is begun

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        finished(self.rebuilding())

    def rebuilding(self, samples: Features | None = None) -> Work[None]:
        """What `rebuild` does, as work in units; the memories must not change meanwhile.

        ``samples`` may be all that they are made of.
        """
        penalty = self.ridge * self.memory.total
        self.take((yield from inverting(self.memory, penalty * np.sqrt(GROWTH), samples)))
        self._lambda = penalty
        for rows in blocks(len(self.weights), self._step_cost / len(self.weights)):
            self._inverse.rows_times(rows, self.memory.B, self.weights[rows])
            yield self._step_cost * (rows.stop - rows.start) / len(self.weights)
        np.multiply(self._own_lambda - self._lambda, self.weights, out=self._residual)
        yield from self._descending(self._descent(EXCESS))

    def take(self, inversion: Inversion | SampleInversion) -> None:
        """Let P be an inverse that is done."""
        self._inverse.matrix = inversion.matrix
        self._inverse.clear()
        self._lambda = self._own_lambda = inversion.ridge
        self.renewed, self._correction = True, None

    def follow_only(self, features: Features) -> None:
        """Let P follow samples, each times the root of its weight; the weights do not."""
        for start in range(0, len(features), MANY):
            self._change(features[start : start + MANY], 1.0)

    def begin_with(self, W: Array, R: Array, penalty: float) -> None:
        """Let the weights begin at W, whose residual for some lambda is R."""
        self._lambda = self.ridge * self.memory.total
        self.weights[:] = W
        self._residual[:] = R - (self._lambda - penalty) * W
        self.renewed = False

    def residual(self) -> tuple[Array, float]:
        """R = B - (A + lambda I) W, and lambda."""
        return self._residual, self._lambda

    def retune(self, ridge: float) -> None:
        """Let the weights follow the leader for another ridge."""
        self.ridge = ridge
        before, self._lambda = self._lambda, ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        if not self._descend(self._descent(RIVAL, conjugate=True)):
            self.rebuild()

    @property
    def off(self) -> float:
        """How far lambda is from that of P, by a factor; above one, P should be made anew soon."""
        return self.off_for(self.ridge)

    def off_for(self, ridge: float) -> float:
        """How far the lambda of a ridge is from that of P, in the same way."""
        drift = max(ridge * self.memory.total / self._own_lambda, np.finfo(float).tiny)
        return float(max(drift * 1.25 / np.sqrt(GROWTH), 1.25 / GROWTH / drift))

    def descent_to(self, ridge: float) -> Descent:
        """Descent from the weights to nearly the best ones for another ridge."""
        penalty, W = ridge * self.memory.total, self.weights.copy()
        R = self._residual - (penalty - self._lambda) * W
        return Descent(W, R, penalty, RIVAL, steps=RIVAL_STEPS, conjugate=True)

    @property
    def leader_cost(self) -> float:
        """Operations of a whole descent to another ridge, about."""
        return 5.0 * self._step_cost

    @property
    def _step_cost(self) -> float:
        return 3.0 * self.memory.dimension**2 * self.weights.shape[1]

    def learn(self, features: Features, Y: Array, weights: Array) -> Array | None:
        """Follow a batch that is already in the memories.

        Returns the leverages of its rows before, each times its weight, if P has followed.
        """
        if len(features) > self.memory.dimension // 2:  # dearer to follow
            last = slice(max(0, len(features) - MANY), len(features))
            leverages = np.zeros(len(features))
            leverages[last] = self.leverages(features[last]) * weights[last]
            self.rebuild()
            return leverages
        followed = self._follow_batch(features, Y, weights, 1.0)
        if followed is None or not self._keep_near(len(features)):
            self.rebuild()
        return followed

    def following(self, features: Features, Y: Array, weights: Array) -> Work[None]:
        """What `learn` does for many samples, which are in the memories, as work in units."""
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        self._inverse.enter()
        D, P, n = self.memory.dimension, self._inverse.matrix, len(features)
        root = np.sqrt(weights)
        Phi, T = features.scaled(root).dense(), aligned((n, len(P)))
        for band in blocks(len(P), 2.0 * n * D, 64):
            T[:, band] = Phi @ P[:D, band]
            yield 2.0 * n * D * (band.stop - band.start)
        inner = np.eye(n)
        for part in blocks(n, 2.0 * n * D):
            inner[part] += Phi[part] @ T[:, :D].T
            yield 2.0 * n * D * (part.stop - part.start)
        try:
            L = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:  # rounding has made P indefinite
            yield from self.rebuilding()
            return
        for band in blocks(len(P), 2.0 * n * n):
            solve_lower(L, T[:, band])
            yield 2.0 * n * n * (band.stop - band.start)
        for band in blocks(len(P), 2.0 * n * len(P), 64):
            add_product(T[:, band], T[:, band.start :], P[band, band.start :], -1.0)
            P[band.stop :, band] = P[band, band.stop :].T
            yield 2.0 * n * len(P) * (band.stop - band.start)
        error = Y * root[:, None] - Phi @ self.weights
        solve_lower(L, error)
        step = T[:, :D].T @ error
        self.weights += step
        self._residual -= (self._lambda - self._own_lambda) * step
        yield 6.0 * n * self.weights.size
        yield from self._descending(self._descent(EXCESS))

    def come_near(self, features: Features, Y: Array, weights: Array, *, patient: bool) -> bool:
        """Follow a batch likewise, with weights that may still be far; whether they are near."""
        if self._follow_batch(features, Y, weights, 1.0) is None:
            raise np.linalg.LinAlgError
        if self.near:
            return True
        if not self._keep_near(len(features), patient=patient):
            raise np.linalg.LinAlgError
        return self.near

    def unlearn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take at most `MANY` samples out of the memories; become the leader of what is left.

        Raises `NotLearnedError`, and changes nothing, if that cannot be a sum of squares.
        """
        self._require(features, Y, weights)
        self.memory.add(features, Y, -weights)
        if self._follow_batch(features, Y, weights, -1.0) is None or not self._correct(LEADER):
            self.rebuild()
            self._correct(LEADER)

    def refine(self) -> None:
        """Make the weights the leader itself."""
        self._descend(self._descent(LEADER))

    def refining(self) -> Work[bool]:
        """What `refine` does, as work in units."""
        return self._descending(self._descent(LEADER))

    def state(self) -> State:
        """Values for a checkpoint; the weights are the solver's."""
        D = self.memory.dimension
        return self._inverse.state(D) | {
            "lambda": self._lambda,
            "own_lambda": self._own_lambda,
            "P": self._inverse.matrix[:D, :D],
            "negative": self._inverse.sign > 0,
            "unchecked": self._unchecked,
            "residual": self._residual[:, : self.memory.n_outputs],
            "correcting": self._correction is not None,
            **self._correction_state(),
        }

    def _correction_state(self) -> State:
        if self._correction is None:
            return {}
        return nested("correction", self._correction.part_state(self.memory.n_outputs))

    def restore(self, saved: StateReader, W: Array) -> None:
        """Take over what `state` has returned."""
        self._lambda = saved.positive("lambda")
        self._own_lambda = saved.positive("own_lambda")
        D = self.memory.dimension
        # Files of version 0.1 have padding below, too.
        P = self._inverse.matrix
        rows = len(P) if saved.has_shape("P", P.shape) else D
        saved.columns("P", out=P[:rows], width=D)
        self._inverse.restore(saved, D)
        self._inverse.sign = 1.0 if saved.flag("negative") else -1.0
        self._unchecked = saved.count("unchecked") if saved.has("unchecked") else 0
        saved.columns("residual", out=self._residual, width=self.memory.n_outputs)
        self.weights[:] = W
        if saved.has("correcting") and saved.flag("correcting"):
            self._correction = self._descent(SOON * EXCESS, steps=1)
            self._correction.restore_part(saved.part("correction"), self.memory.n_outputs)

    @property
    def near(self) -> bool:
        """Whether the weights are near the leader."""
        return self._excess() <= EXCESS

    def _excess(self) -> float:
        """Bound on what the objective has above the smallest possible one, as a share of it."""
        R, penalty = self._residual, self._lambda
        objective = self.memory.objective(self.weights, R, penalty)
        return float(np.vdot(R, R)) / (penalty * max(objective, np.finfo(float).tiny))

    def _keep_near(self, rows: int, *, patient: bool = False) -> bool:
        """Do the share of some rows in a step of the weights, if they need one soon.

        All of it where they would miss the leader, unless that may be. False if that fails.
        """
        excess, self.spent = self._excess(), 0.0
        if excess > EXCESS and not patient:
            self.spent = self._step_cost
            return self._correct()
        if self._correction is None:
            if excess <= (SOON if self._step_cost > 2.0 * UNIT else 1.0) * EXCESS:
                return True
            self._correction = self._descent(SOON * EXCESS, steps=1)
        self._correction.penalty = self._lambda
        self._correction.advance(self.memory, self._own_lambda, self._inverse, rows)
        self.spent = min(rows, PARTS) * self._step_cost / PARTS
        if not self._correction.within:
            self._correction = None
        return True

    def _require(self, features: Features, Y: Array, weights: Array) -> None:
        """Raise `NotLearnedError` unless A + lambda_0 I stays positive definite without a batch."""
        memory = self.memory
        root = np.sqrt(weights)
        scaled = features.scaled(root)
        T = self._combined(scaled)
        inner = scaled.inner(T)
        condition = features.values.shape[1] * float(memory.diagonal().max()) / self._own_lambda
        left = 1.0 - np.linalg.eigvalsh(inner)[-1]
        if left < -memory.rounding - 1e-14 * condition:
            raise NotLearnedError()
        if left < SMALLEST_PIVOT**2:
            return
        # No weights can have less than no error, least of all those that fit the rest best.
        error = aligned(Y.shape)
        features.times(self.weights, error)
        np.subtract(Y, error, out=error)
        dual = np.linalg.solve(np.eye(len(features)) - inner, error * root[:, None])
        step = -(T[:, : memory.dimension].T @ dual)
        after = self.ridge * (memory.total - float(weights.sum()))
        W = self.weights + step
        R = self._residual - (after - self._lambda) * self.weights
        R -= (after - self._own_lambda) * step
        B = memory.B.copy()
        features.add_transposed(Y, -weights, B)
        memory.require_targets(W, B + R, Y, weights)

    def _follow_batch(
        self, features: Features, Y: Array, weights: Array, sign: float
    ) -> Array | None:
        """Follow a batch that came (sign 1) or went (-1); None if P should be made anew.

        Returns the leverages of its rows, each times its weight.
        """
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        if self.off > FARTHEST or len(features) > self.memory.dimension // 2:
            return None
        self._residual -= (self._lambda - before) * self.weights
        root, leverages = np.sqrt(weights), np.empty(len(features))
        try:
            for start in range(0, len(features), MANY):
                part = slice(start, start + MANY)
                scaled = features[part].scaled(root[part])
                leverages[part] = self._follow(scaled, Y[part] * root[part, None], sign)
        except np.linalg.LinAlgError:  # rounding has made P indefinite
            return None
        return leverages

    def _follow(self, features: Features, Y: Array, sign: float) -> Array:
        """P -= s T^T T, W += s T^T L^-1 (Y - Phi W), with s the sign,
        L L^T = I + s Phi P Phi^T and T = L^-1 Phi P."""
        L, T = self._change(features, sign)
        error = aligned(Y.shape)
        features.times(self.weights, error)
        np.subtract(Y, error, out=error)
        solve_lower(L, error)
        step = T[:, : len(self.weights)].T @ (sign * error)
        self.weights += step
        self._residual -= (self._lambda - self._own_lambda) * step
        leverages = sign * ((L**2).sum(axis=1) - 1.0)
        some = min(len(L), SOME)  # L T = Phi P
        return self._at_lambda(leverages, ((L[:some, :some] @ T[:some]) ** 2).sum(axis=1))

    def rows_solved(self, features: Features) -> Array:
        """Phi (A + lambda I)^-1, nearly."""
        rows = self._combined(features)[:, : self.memory.dimension]
        leverages = np.einsum("ij,ij->i", rows, features.dense())
        squares = np.einsum("ij,ij->i", rows, rows)
        return rows * self._factors(leverages, squares)[:, None]

    def solved(self, X: Array) -> Array:
        """(A + lambda I)^-1 X, nearly.

        With r = lambda / lambda_0, by P + (1 / r - 1) lambda_0 P^2: right where A is large, and
        where it is zero.
        """
        once = self._times(X)
        return once + (self._own_lambda / self._lambda - 1.0) * self._own_lambda * self._times(once)

    def _times(self, X: Array) -> Array:
        """P X, with what is pending."""
        inverse, T = self._inverse, self._inverse.waiting[:, : len(X)]
        change = T.T @ (inverse.sign * (T @ X))
        return np.asarray((X.T @ inverse.matrix[: len(X), : len(X)]).T + change)  # as in A W

    def _combined(self, features: Features) -> Array:
        """Phi P, with what is pending."""
        inverse, waiting = self._inverse, self._inverse.waiting
        out = aligned((len(features), len(inverse.matrix)))
        features.combine(inverse.matrix, out)
        out += inverse.sign * features.inner(waiting) @ waiting
        return out

    def leverages(self, features: Features) -> Array:
        """phi^T (A + lambda I)^-1 phi of rows, nearly."""
        inverse = self._inverse
        change = (features.inner(inverse.waiting) ** 2).sum(axis=1)
        leverages = features.quadratic(inverse.matrix) + inverse.sign * change
        return self._at_lambda(leverages, (self._combined(features[:FEW]) ** 2).sum(axis=1))

    def _at_lambda(self, leverages: Array, squares: Array) -> Array:
        """What phi^T P phi would be with lambda for lambda_0, nearly.

        ``squares`` are |P phi|^2 of the first rows, which stand for all.
        """
        sums = leverages[: len(squares)].sum(keepdims=True)
        return leverages * self._factors(sums, squares.sum(keepdims=True))

    def _factors(self, leverages: Array, squares: Array) -> Array:
        r"""By what factor lambda for lambda_0 changes phi^T P phi, nearly.

        |P phi|^2 is a share p of all that it can be, phi^T P phi / lambda_0. With
        r = lambda / lambda_0, the factor lies between 1 / (1 + (r - 1) p), if directions were
        alike, and 1 - p + p / r, if they were as unlike as can be. This is the geometric mean.
        """
        tiny = np.finfo(float).tiny
        share = np.minimum(squares * self._own_lambda / np.maximum(leverages, tiny), 1.0)
        ratio = self._lambda / self._own_lambda
        most, least = 1.0 + share * (1.0 / ratio - 1.0), 1.0 / (1.0 + share * (ratio - 1.0))
        return np.sqrt(most * least)

    def _change(self, features: Features, sign: float) -> tuple[Array, Array]:
        """P -= s T^T T for samples that came or went; returns L and T."""
        n, inverse = len(features), self._inverse
        if sign != -inverse.sign:
            inverse.enter()
            inverse.sign = -sign
            self.renewed = True
        elif inverse.make_room(n):
            self.renewed = True
        self._unchecked += n
        if self._unchecked > self.memory.dimension:
            self.renewed, self._unchecked = True, 0
        T = self._combined(features)
        L = np.linalg.cholesky(np.eye(n) + sign * features.inner(T))
        if L.diagonal().min() < SMALLEST_PIVOT:  # too many digits would be lost
            raise np.linalg.LinAlgError
        solve_lower(L, T)
        inverse.append(T)
        if self._correction is not None:
            self._correction.follow(T, sign)
        return np.asarray(L, dtype=np.float64), T

    def _correct(self, excess: float = EXCESS) -> bool:
        """Descend until the certificate holds; False if it fails."""
        self._correction = None
        return self._descend(self._descent(excess))

    def _descent(self, excess: float, **options: Any) -> Descent:
        """Descent of the weights themselves."""
        return Descent(self.weights, self._residual, self._lambda, excess, **options)

    def _descend(self, descent: Descent) -> bool:
        """Let a descent come to its end; whether it has reached its goal."""
        while descent.goes_on:
            self.approach(descent, PARTS)
        return descent.reached

    def _descending(self, descent: Descent) -> Work[bool]:
        """What `_descend` does, as work in units."""
        while descent.goes_on:
            self.approach(descent, 1)
            yield self._step_cost / PARTS
        return descent.reached

    def approach(self, descent: Descent, parts: int) -> None:
        """Do some parts of a step of a descent."""
        descent.advance(self.memory, self._own_lambda, self._inverse, parts)


def read_rival(saved: StateReader, shape: tuple[int, ...], n_outputs: int) -> Descent:
    """The descent to another ridge that its `state` has described."""
    W, R = aligned(shape), aligned(shape)
    descent = Descent(W, R, saved.positive("penalty"), RIVAL, steps=RIVAL_STEPS, conjugate=True)
    descent.restore(saved, n_outputs)
    return descent
