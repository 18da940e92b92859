r"""The leader, once samples are many: the inverse :math:`P = (A + \lambda_0 I)^{-1}`, kept current.

A batch changes P by a matrix of low rank (Woodbury's identity, the recursive form of appendix B);
such changes are collected and pushed into P together. Weights for lambda_0 follow recursively.

The true lambda = ridge * total moves away from lambda_0 in the meantime. With d = lambda -
lambda_0, the leader solves (I + d P) W = W_0, a system whose condition number is at most
lambda / lambda_0: none, one or two steps of conjugate gradients remove the difference. That
is repeated as total grows, the sooner the more is at stake. When it has grown by `GROWTH`, P is
made anew.
"""

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotri

from losse._kernels.blas import solve_lower
from losse._kernels.block_update import rows_times
from losse._kernels.inverse import combine_rows, dot_rows, mirror
from losse._kernels.simd import aligned, padded
from losse.encoders import Features, SparseFeatures
from losse.encoders.features import Array
from losse.ftl.memory import Memory
from losse.ftl.sample_space import ridge_excess
from losse.ftl.solver import ridge_cholesky

GROWTH = 5.0
PENDING = 256
EXCESS = 0.005
"""Share of the objective by which a stale lambda may raise it."""


class TrackedInverse:
    """P, the weights W_0 for its lambda_0, and the leader's ``weights`` for the true lambda."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        size = padded(memory.dimension)
        self._P = aligned((size, size))
        self._pending = aligned((PENDING, size))
        self._W = aligned(memory.B.shape)
        self.weights = aligned(memory.B.shape)
        self.rebuild()

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        D = self.memory.dimension
        self._ridge = self.ridge * self.memory.total * np.sqrt(GROWTH)
        factor = ridge_cholesky(self.memory.square(), self._ridge)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        mirror(inverse.T, self._P)
        self._count = 0
        np.matmul(self._P[:D, :D], self.memory.B, out=self._W)
        self._correct()

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Follow a batch that is already in the memories."""
        total = self.memory.total
        if total * self.ridge > self._ridge * np.sqrt(GROWTH):
            self.rebuild()
            return
        root = np.sqrt(weights)
        for start in range(0, len(features), PENDING):
            part = slice(start, start + PENDING)
            self._follow(features[part].scaled(root[part]), Y[part] * root[part, None])
        stake = max(ridge_excess(total * self.ridge / self._ridge), EXCESS / 10)
        if total > self._corrected_at * (1 + EXCESS / stake):
            self._correct()

    def _follow(self, features: Features, Y: Array) -> None:
        """P -= T^T T and W += T^T L^-1 (Y - Phi W), where L L^T = I + Phi P Phi^T, T = L^-1 Phi P.

        The corrected weights take the same step from their own error: the fit of new samples
        hardly depends on lambda.
        """
        n = len(features)
        if self._count + n > PENDING:
            self._push()
        G = self._times_inverse(features)
        small = np.eye(n) + self._inner(features, G)
        L = np.linalg.cholesky(small)
        solve_lower(L, G)
        for W in (self._W, self.weights):
            error = aligned(Y.shape)
            features.times(W, error)
            np.subtract(Y, error, out=error)
            solve_lower(L, error)
            W += G[:, : len(W)].T @ error
        self._pending[self._count : self._count + n] = G
        self._count += n

    def _inner(self, features: Features, T: Array) -> Array:
        """Phi T^T."""
        if isinstance(features, SparseFeatures):
            out = np.empty((len(features), len(T)))
            dot_rows(features.indices, features.values, T, out)
            return out
        return np.asarray(features.values @ T[:, : features.dimension].T)

    def _times_inverse(self, features: Features) -> Array:
        """Phi P, with what is pending."""
        D = self.memory.dimension
        out = aligned((len(features), len(self._P)))
        if isinstance(features, SparseFeatures):
            combine_rows(features.indices, features.values, self._P, out)
        else:
            np.matmul(features.values, self._P[:D], out=out)
        pending = self._pending[: self._count]
        out -= self._inner(features, pending) @ pending
        return out

    def _push(self) -> None:
        """P -= T^T T."""
        T = self._pending[: self._count].T
        dgemm(-1.0, T, T, beta=1.0, c=self._P.T, trans_b=True, overwrite_c=True)
        self._count = 0

    def _apply(self, X: Array) -> Array:
        """P X, with what is pending."""
        out = aligned(X.shape)
        D = len(X)
        rows_times(self._P[:, :D], np.arange(D), D, X, out)
        pending = self._pending[: self._count, :D]
        out -= pending.T @ (pending @ X)
        return out

    def _correct(self) -> None:
        """Conjugate gradients towards (I + d P) W = W_0, from W_0, as many steps as it takes."""
        self._corrected_at = self.memory.total
        target = self.ridge * self.memory.total
        drift = target - self._ridge
        self.weights[:] = self._W
        steps = _steps_needed(target / self._ridge)
        if steps == 0:
            return
        residual = -drift * self._apply(self._W)
        direction = residual
        power = (residual * residual).sum(axis=0)
        for _ in range(steps):
            image = direction + drift * self._apply(direction)
            length = power / _nonzero((direction * image).sum(axis=0))
            self.weights += length * direction
            residual = residual - length * image
            before, power = power, (residual * residual).sum(axis=0)
            direction = residual + power / _nonzero(before) * direction


def _nonzero(values: Array) -> Array:
    return np.where(values > 0, values, 1.0)


def _steps_needed(ratio: float) -> int:
    """Steps after which the bound on the objective's excess falls below `EXCESS`.

    k steps shrink it by 1 / T_k(x)^2, with Chebyshev's polynomial T_k, x = (c + 1) / (c - 1) and
    the condition number c.

    >>> [_steps_needed(r) for r in (1.0, 1.1, 1.5, 2.2)]
    [0, 0, 1, 2]
    """
    excess = ridge_excess(ratio)
    if excess <= EXCESS:
        return 0
    condition = max(ratio, 1 / ratio)
    angle = np.arccosh((condition + 1) / (condition - 1))
    steps = 1
    while excess / np.cosh(steps * angle) ** 2 > EXCESS:
        steps += 1
    return steps
