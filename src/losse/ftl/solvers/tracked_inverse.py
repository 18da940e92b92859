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

from collections.abc import Callable
from typing import Any

import numpy as np

from losse._kernels.blas import solve_lower
from losse._kernels.block_update import rows_times
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.deferred import MANY, Deferred
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.ftl.solvers.inversion import Inversion, inverting
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, finished

GROWTH = 5.0
FARTHEST = 10.0
"""How far lambda may be from that of P at worst; see `TrackedInverse.off`."""
EXCESS = 0.008
CORRECTIONS = 20
"""Far more than it takes while P is accurate."""
SMALLEST_PIVOT = 1e-4
"""A batch whose unlearning divides by less than the square of this makes P anew."""
RIVAL, RIVAL_STEPS = 3e-3, 10
"""Excess of weights for a ridge that is on trial, and steps at most."""
SOME = 16
"""Rows that tell what another lambda would make of leverages."""
LEADER = 1e-14
"""Excess at which the weights count as the leader itself."""


class Descent:
    """Weights on their way to the leader for some penalty, with P as the preconditioner.

    One step is mostly enough, and then steepest descent is as good as conjugate gradients, which
    need exact sums. Rows may be learned between steps: weights that take a while are as good as
    those of the rows before.

    Parameters
    ----------
    W, R
        The weights and their residual, B - (A + penalty I) W. Both are changed in place.
    penalty
        Lambda.
    excess
        Share of the objective by which the weights may miss the leader.
    steps
        At most so many.
    conjugate
        Whether these are conjugate to each other.
    """

    def __init__(
        self,
        W: Array,
        R: Array,
        penalty: float,
        excess: float,
        *,
        steps: int = CORRECTIONS,
        conjugate: bool = False,
    ) -> None:
        self.W = W
        self._R = R
        self._penalty = penalty
        self._excess = excess
        self._left = steps
        self._conjugate = conjugate
        self._direction, self._image = W, R
        self._before = np.zeros(W.shape[1])
        self.reached = False
        """Whether the weights are the leader but for the excess."""

    @property
    def goes_on(self) -> bool:
        """Whether there is another step to do."""
        return not self.reached and self._left > 0

    def step(self, memory: Memory, own_lambda: float, apply: Callable[[Array], Array]) -> None:
        """Do a step, if it takes one; ``apply`` multiplies by P, which is for ``own_lambda``."""
        W, R, penalty = self.W, self._R, self._penalty
        self._left -= 1
        if (R * R).sum() <= self._excess * penalty * memory.objective(W, R, penalty):
            self.reached = True
            return
        Z = apply(R)
        descent = (R * Z).sum(axis=0)
        ratio = descent / np.where(self._before > 0, self._before, np.inf) * self._conjugate
        direction = Z + ratio * self._direction
        # (A + penalty I) times the direction
        image = R + (penalty - own_lambda) * Z + ratio * self._image
        curvature = (direction * image).sum(axis=0)
        if ((curvature <= 0) & (descent != 0)).any():  # rounding has made P or A indefinite
            self._left = 0
            return
        length = descent / np.where(curvature > 0, curvature, 1.0)
        W += length * direction
        R -= length * image
        self._direction, self._image, self._before = direction, image, descent

    def state(self, n_outputs: int) -> State:
        """Values for a checkpoint of a descent to another ridge."""
        S = n_outputs
        return {
            "W": self.W[:, :S], "R": self._R[:, :S], "before": self._before[:S],
            "direction": self._direction[:, :S], "image": self._image[:, :S],
            "penalty": self._penalty, "left": self._left,
        }  # fmt: skip

    @classmethod
    def read(cls, saved: StateReader, shape: tuple[int, ...], n_outputs: int) -> Descent:
        """The descent that `state` has described."""
        W, R, direction, image = (aligned(shape) for _ in range(4))
        for name, out in (("W", W), ("R", R), ("direction", direction), ("image", image)):
            saved.columns(name, out=out, width=n_outputs)
        descent = cls(W, R, saved.positive("penalty"), RIVAL, conjugate=True)
        descent._direction, descent._image = direction, image
        saved.columns("before", out=descent._before, width=n_outputs)
        descent._left = saved.count("left", at_most=RIVAL_STEPS)
        return descent


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
        self._unchecked = 0  # rows that it has followed since

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        finished(self.rebuilding())

    def rebuilding(self) -> Work[None]:
        """What `rebuild` does, as work in units; the memories must not change meanwhile."""
        D, penalty = self.memory.dimension, self.ridge * self.memory.total
        inversion = yield from inverting(self.memory, penalty * np.sqrt(GROWTH))
        yield from self.taking(inversion)
        self._lambda = penalty
        np.matmul(self._inverse.matrix[:D, :D], self.memory.B, out=self.weights)
        np.multiply(self._own_lambda - self._lambda, self.weights, out=self._residual)
        yield self._step_cost
        yield from self._descending(self._descent(EXCESS))

    def taking(self, inversion: Inversion) -> Work[None]:
        """Let P be an inverse that is done, as work in units."""
        self._inverse.matrix = yield from inversion.result()
        self._inverse.clear()
        self._lambda = self._own_lambda = inversion.ridge
        self.renewed = True

    def follow_only(self, features: Features) -> None:
        """Let P follow samples, each times the root of its weight; the weights do not."""
        for start in range(0, len(features), MANY):
            self._change(features[start : start + MANY], 1.0)

    def begin_at(self, W: Array) -> None:
        """Let the weights begin at W, and follow the leader from there."""
        self.weights[:] = W
        self._lambda = self.ridge * self.memory.total
        self._residual[:] = self.memory.B - self.memory.times(W) - self._lambda * W
        if self._correct():
            self.renewed = False  # the residual is that of the sums
        else:
            self.rebuild()

    def retune(self, ridge: float) -> None:
        """Let the weights follow the leader for another ridge."""
        self.ridge = ridge
        before, self._lambda = self._lambda, ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        if not finished(self._descending(self._descent(RIVAL, conjugate=True))):
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
        if followed is None or not self._correct():
            self.rebuild()
        return followed

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
        self._correct(LEADER)

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
        }

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

    def _require(self, features: Features, Y: Array, weights: Array) -> None:
        """Raise `NotLearnedError` unless A + lambda_0 I stays positive definite without a batch."""
        memory = self.memory
        root = np.sqrt(weights)
        scaled = features.scaled(root)
        T = self._times_inverse(scaled)
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

    def leverages(self, features: Features) -> Array:
        """phi^T (A + lambda I)^-1 phi of rows, nearly."""
        leverages = np.empty(len(features))
        for start in range(0, len(features), SOME):
            part = slice(start, start + SOME)
            T = self._times_inverse(features[part])
            exact = features[part].inner(T).diagonal()
            leverages[part] = self._at_lambda(exact, (T**2).sum(axis=1))
        return leverages

    def _at_lambda(self, leverages: Array, squares: Array) -> Array:
        r"""What phi^T P phi would be with lambda for lambda_0, nearly.

        ``squares`` are |P phi|^2 of the first rows, a share p of which is all that it can be,
        phi^T P phi / lambda_0. With r = lambda / lambda_0, the factor lies between
        1 / (1 + (r - 1) p), if directions were alike, and 1 - p + p / r, if they were as unlike as
        can be. This is the geometric mean.
        """
        sums = max(float(leverages[: len(squares)].sum()), np.finfo(float).tiny)
        share = min(float(squares.sum()) * self._own_lambda / sums, 1.0)
        ratio = self._lambda / self._own_lambda
        most, least = 1.0 + share * (1.0 / ratio - 1.0), 1.0 / (1.0 + share * (ratio - 1.0))
        return leverages * np.sqrt(most * least)

    def _change(self, features: Features, sign: float) -> tuple[Array, Array]:
        """P -= s T^T T for samples that came or went; returns L and T."""
        n, inverse = len(features), self._inverse
        if not inverse.has_room(n) or sign != -inverse.sign:
            inverse.enter()
            inverse.sign = -sign
            self.renewed = True
        inverse.enter_some(n)
        self._unchecked += n
        if self._unchecked > self.memory.dimension:
            self.renewed, self._unchecked = True, 0
        T = self._times_inverse(features)
        L = np.linalg.cholesky(np.eye(n) + sign * features.inner(T))
        if L.diagonal().min() < SMALLEST_PIVOT:  # too many digits would be lost
            raise np.linalg.LinAlgError
        solve_lower(L, T)
        inverse.append(T)
        return np.asarray(L, dtype=np.float64), T

    def _correct(self, excess: float = EXCESS) -> bool:
        """Descend until the certificate holds; False if it fails."""
        return finished(self._descending(self._descent(excess)))

    def _descent(self, excess: float, **options: Any) -> Descent:
        """Descent of the weights themselves."""
        return Descent(self.weights, self._residual, self._lambda, excess, **options)

    def _descending(self, descent: Descent) -> Work[bool]:
        """Let a descent come to its end, as work in units; whether it has reached its goal."""
        while descent.goes_on:
            self.approach(descent)
            yield self._step_cost
        return descent.reached

    def approach(self, descent: Descent) -> None:
        """Do a step of a descent."""
        descent.step(self.memory, self._own_lambda, self._apply)

    def _times_inverse(self, features: Features) -> Array:
        """Phi P, with what is pending."""
        inverse, waiting = self._inverse, self._inverse.waiting
        out = aligned((len(features), len(inverse.matrix)))
        features.combine(inverse.matrix, out)
        out += inverse.sign * features.inner(waiting) @ waiting
        return out

    def _apply(self, X: Array) -> Array:
        """P X, with what is pending."""
        D = len(X)
        out = aligned(X.shape)
        rows_times(self._inverse.matrix[:, :D], np.arange(D), D, X, out)
        waiting = self._inverse.waiting[:, :D]
        out += self._inverse.sign * (waiting.T @ (waiting @ X))
        return out
