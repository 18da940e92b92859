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

import numpy as np
from scipy.linalg.blas import dsyrk

from losse._kernels.blas import solve_lower
from losse._kernels.block_update import rows_times
from losse._kernels.inverse import mirror
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.ftl.solvers.inversion import Inversion, inverting
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, finished

GROWTH = 5.0
FARTHEST = 10.0
"""How far lambda may be from that of P at worst; see `TrackedInverse.off`."""
EXCESS = 0.008
PENDING = 256
CORRECTIONS = 20
"""Far more than it takes while P is accurate."""
SMALLEST_PIVOT = 1e-4
"""A batch whose unlearning divides by less than the square of this makes P anew."""
RIVAL, RIVAL_STEPS = 3e-3, 10
"""Excess of weights for a ridge that is on trial, and steps at most."""
LEADER = 1e-14
"""Excess at which the weights count as the leader itself."""


class TrackedInverse:
    """P and the weights that follow the leader with its help."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        size = padded(memory.dimension)
        self._P = aligned((size, size))
        self._pending = aligned((2 * PENDING, size))
        self._count = 0
        self._entering = 0  # rows of it that enter P, a few columns at a time
        self._entered = 0  # columns that they have entered with, and that are zero since
        self._sign = 1.0
        self.weights = aligned(memory.B.shape)
        self._residual = aligned(memory.B.shape)
        self._lambda = self._own_lambda = 0.0
        self.renewed = False
        """Whether P has been changed or made anew since this was last set to False."""

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        finished(self.rebuilding())

    def rebuilding(self) -> Work[None]:
        """What `rebuild` does, as work in units; the memories must not change meanwhile."""
        D, penalty = self.memory.dimension, self.ridge * self.memory.total
        inversion = yield from inverting(self.memory, penalty * np.sqrt(GROWTH))
        yield from self.taking(inversion)
        self._lambda = penalty
        np.matmul(self._P[:D, :D], self.memory.B, out=self.weights)
        np.multiply(self._own_lambda - self._lambda, self.weights, out=self._residual)
        yield self._step_cost
        yield from self._descending(self.weights, self._residual, self._lambda, EXCESS)

    def taking(self, inversion: Inversion) -> Work[None]:
        """Let P be an inverse that is done, as work in units."""
        self._P = yield from inversion.result()
        self._lambda = self._own_lambda = inversion.ridge
        self._count = self._entering = self._entered = 0
        self.renewed = True

    def follow_only(self, features: Features) -> None:
        """Let P follow samples, each times the root of its weight; the weights do not."""
        for start in range(0, len(features), PENDING):
            self._change(features[start : start + PENDING], 1.0)

    def begin_at(self, W: Array) -> None:
        """Let the weights begin at W, and follow the leader from there."""
        self.weights[:] = W
        self._lambda = self.ridge * self.memory.total
        self._residual[:] = self.memory.B - self.memory.times(W) - self._lambda * W
        if not self._correct():
            self.rebuild()

    def retune(self, ridge: float) -> None:
        """Let the weights follow the leader for another ridge."""
        self.ridge = ridge
        before, self._lambda = self._lambda, ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        state = self.weights, self._residual, self._lambda
        if not finished(self._descending(*state, RIVAL, conjugate=True)):
            self.rebuild()

    @property
    def off(self) -> float:
        """How far lambda is from that of P, by a factor; above one, P should be made anew soon."""
        drift = self._lambda / self._own_lambda
        return float(max(drift * 1.25 / np.sqrt(GROWTH), 1.25 / GROWTH / drift))

    def leading(self, ridge: float) -> Work[Array]:
        """Nearly the best weights for another ridge, as work in units."""
        penalty, W = ridge * self.memory.total, self.weights.copy()
        R = self._residual - (penalty - self._lambda) * W
        yield from self._descending(W, R, penalty, RIVAL, steps=RIVAL_STEPS, conjugate=True)
        return W

    @property
    def leader_cost(self) -> float:
        """Operations of `leading`, about."""
        return 5.0 * self._step_cost

    @property
    def _step_cost(self) -> float:
        return 3.0 * self.memory.dimension**2 * self.weights.shape[1]

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Follow a batch that is already in the memories."""
        if not self._follow_batch(features, Y, weights, 1.0) or not self._correct():
            self.rebuild()

    def unlearn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take at most `PENDING` samples out of the memories; become the leader of what is left.

        Raises `NotLearnedError`, and changes nothing, if that cannot be a sum of squares.
        """
        self._require(features, Y, weights)
        self.memory.add(features, Y, -weights)
        if not self._follow_batch(features, Y, weights, -1.0) or not self._correct(LEADER):
            self.rebuild()
            self._correct(LEADER)

    def refine(self) -> None:
        """Make the weights the leader itself."""
        self._correct(LEADER)

    def state(self) -> State:
        """Values for a checkpoint; the weights are the solver's."""
        D = self.memory.dimension
        return {
            "lambda": self._lambda,
            "own_lambda": self._own_lambda,
            "P": self._P[:D, :D],
            "pending": self._pending[: self._count, :D],
            "count": self._count,
            "entering": self._entering,
            "entered": self._entered,
            "negative": self._sign < 0,
            "residual": self._residual[:, : self.memory.n_outputs],
        }

    def restore(self, saved: StateReader, W: Array) -> None:
        """Take over what `state` has returned."""
        self._lambda = saved.positive("lambda")
        self._own_lambda = saved.positive("own_lambda")
        D = self.memory.dimension
        # Files of version 0.1 have padding below, too.
        rows = len(self._P) if saved.has_shape("P", self._P.shape) else D
        saved.columns("P", out=self._P[:rows], width=D)
        self._count = saved.count("count", at_most=len(self._pending))
        if saved.has("entering"):
            self._entering = saved.count("entering", at_most=self._count)
            self._entered = saved.count("entered", at_most=len(self._P))
        saved.columns("pending", out=self._pending[: self._count], width=D)
        self._sign = -1.0 if saved.flag("negative") else 1.0
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

    def _follow_batch(self, features: Features, Y: Array, weights: Array, sign: float) -> bool:
        """Follow a batch that came (sign 1) or went (-1); False if P should be made anew."""
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        if self.off > FARTHEST:
            return False
        if len(features) > self.memory.dimension // 2:  # dearer to follow
            return False
        self._residual -= (self._lambda - before) * self.weights
        root = np.sqrt(weights)
        try:
            for start in range(0, len(features), PENDING):
                part = slice(start, start + PENDING)
                self._follow(features[part].scaled(root[part]), Y[part] * root[part, None], sign)
        except np.linalg.LinAlgError:  # rounding has made P indefinite
            return False
        return True

    def _follow(self, features: Features, Y: Array, sign: float) -> None:
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

    def _change(self, features: Features, sign: float) -> tuple[Array, Array]:
        """P -= s T^T T for samples that came or went; returns L and T."""
        n = len(features)
        if self._count + n > len(self._pending) or sign != self._sign:
            self._push()
            self._sign = sign
        self._push_some(n)
        T = self._times_inverse(features)
        L = np.linalg.cholesky(np.eye(n) + sign * features.inner(T))
        if L.diagonal().min() < SMALLEST_PIVOT:  # too many digits would be lost
            raise np.linalg.LinAlgError
        solve_lower(L, T)
        self._pending[self._count : self._count + n] = T
        self._count += n
        return np.asarray(L, dtype=np.float64), T

    def _correct(self, excess: float = EXCESS) -> bool:
        """Descend until the certificate holds; False if it fails."""
        return finished(self._descending(self.weights, self._residual, self._lambda, excess))

    def _descending(
        self,
        W: Array,
        R: Array,
        penalty: float,
        excess: float,
        *,
        steps: int = CORRECTIONS,
        conjugate: bool = False,
    ) -> Work[bool]:
        """Descent, preconditioned by P, until W is the leader but for some excess; or False.

        R is the residual, B - (A + penalty I) W. Both are changed in place. One step is mostly
        enough, and then steepest descent is as good as conjugate gradients, which need exact sums.
        """
        drift = penalty - self._own_lambda
        direction, image, before = W, R, np.full(W.shape[1], np.inf)
        for _ in range(steps):
            objective = self.memory.objective(W, R, penalty)
            if (R * R).sum() <= excess * penalty * objective:
                return True
            Z = self._apply(R)
            descent = (R * Z).sum(axis=0)
            ratio = descent / np.where(before > 0, before, np.inf) * conjugate
            direction = Z + ratio * direction
            image = R + drift * Z + ratio * image  # (A + penalty I) times the direction
            curvature = (direction * image).sum(axis=0)
            if ((curvature <= 0) & (descent != 0)).any():  # rounding has made P or A indefinite
                return False
            length = descent / np.where(curvature > 0, curvature, 1.0)
            W += length * direction
            R -= length * image
            before = descent
            yield self._step_cost
        return False

    def _times_inverse(self, features: Features) -> Array:
        """Phi P, with what is pending."""
        out = aligned((len(features), len(self._P)))
        features.combine(self._P, out)
        pending = self._pending[: self._count]
        out -= self._sign * features.inner(pending) @ pending
        return out

    def _apply(self, X: Array) -> Array:
        """P X, with what is pending."""
        D = len(X)
        out = aligned(X.shape)
        rows_times(self._P[:, :D], np.arange(D), D, X, out)
        pending = self._pending[: self._count, :D]
        out -= self._sign * (pending.T @ (pending @ X))
        return out

    def _push_some(self, rows: int) -> None:
        """Let what is pending enter P, when it is much, little by little as rows come.

        P - s T^T T stays the same: where columns have entered P, those of T become zero.
        """
        if self._entering == 0 and self._count >= PENDING:
            self._entering = self._count
        if self._entering == 0:
            return
        P, T = self._P, self._pending[: self._entering]
        first = self._entered
        last = min(first - (-2 * rows * len(P) // PENDING), len(P))
        P[first:last, first:] -= self._sign * (T[:, first:last].T @ T[:, first:])
        P[last:, first:last] = P[first:last, last:].T
        T[:, first:last] = 0.0
        self._entered = last
        if last == len(P):
            left = self._count - self._entering
            self._pending[:left] = self._pending[self._entering : self._count]
            self._count, self._entering, self._entered = left, 0, 0
            self.renewed = True

    def _push(self) -> None:
        """P -= s T^T T, with s the sign of what is pending."""
        T = self._pending[: self._count].T
        dsyrk(-self._sign, T, beta=1.0, c=self._P.T, lower=True, overwrite_c=True)
        mirror(self._P)
        self._count = self._entering = self._entered = 0
        self.renewed = True
