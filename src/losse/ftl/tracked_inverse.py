r"""The leader, once samples are many: the inverse :math:`P = (A + \lambda_0 I)^{-1}`, kept current.

A batch changes P by a matrix of low rank (Woodbury's identity, the recursive form of appendix B);
such changes are collected and pushed into P together. Weights for lambda_0 follow recursively.

The true lambda = ridge * total moves away from lambda_0 in the meantime. With d = lambda -
lambda_0, the leader solves (I + d P) W = W_0, a system whose condition number is at most
lambda / lambda_0; one step of conjugate gradients removes nearly all of the difference, and is
repeated each time total grows by `CORRECT`. When it has grown by `GROWTH`, P is made anew.
"""

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri

from losse._kernels.blas import solve_lower
from losse._kernels.inverse import combine_rows, dot_rows, mirror
from losse._kernels.simd import aligned, padded
from losse.encoders import Features, SparseFeatures
from losse.encoders.features import Array
from losse.ftl.memory import Memory
from losse.ftl.solver import ridge_cholesky

GROWTH = 3.0
CORRECT = 1.02
PENDING = 256
_TILE = 256


class TrackedInverse:
    """P and the weights that follow from it."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        size = padded(memory.dimension)
        self._P = aligned((size, size))
        self._pending = aligned((PENDING, size))
        self.rebuild()

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        D = self.memory.dimension
        self._ridge = self.ridge * self.memory.total * np.sqrt(GROWTH)
        factor = ridge_cholesky(self.memory.square(), self._ridge)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        mirror(inverse.T, self._P)
        self._count = 0
        self._W = aligned(self.memory.B.shape)
        np.matmul(self._P[:D, :D], self.memory.B, out=self._W)
        self._correct()

    def leader(self) -> Array:
        """The current weights."""
        return self._W + self._correction

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
        if total > self._corrected_at * CORRECT:
            self._correct()

    def _follow(self, features: Features, Y: Array) -> None:
        """P -= T^T T and W += T^T L^-1 (Y - Phi W), where L L^T = I + Phi P Phi^T, T = L^-1 Phi P."""
        n = len(features)
        if self._count + n > PENDING:
            self._push()
        G = self._times_inverse(features)
        small = np.eye(n) + self._inner(features, G)
        L = cholesky(small, lower=True, check_finite=False)
        error = aligned(Y.shape)
        features.times(self._W, error)
        np.subtract(Y, error, out=error)
        solve_lower(L, G)
        solve_lower(L, error)
        self._W += (error.T @ G[:, : len(self._W)]).T
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
        """P -= T^T T, tile by tile, and its mirror image."""
        T = self._pending[: self._count]
        size = len(self._P)
        for i in range(0, size, _TILE):
            for j in range(0, i + _TILE, _TILE):
                own = self._P[i : i + _TILE, j : j + _TILE]
                own -= T[:, i : i + _TILE].T @ T[:, j : j + _TILE]
                if i != j:
                    self._P[j : j + _TILE, i : i + _TILE] = own.T
        self._count = 0

    def _apply(self, X: Array) -> Array:
        """P X."""
        D = self.memory.dimension
        pending = self._pending[: self._count, :D]
        return np.asarray(self._P[:D, :D] @ X - pending.T @ (pending @ X))

    def _correct(self) -> None:
        """One step of conjugate gradients towards (I + d P) W = W_0, from W_0."""
        self._corrected_at = self.memory.total
        drift = self.ridge * self.memory.total - self._ridge
        residual = -drift * self._apply(self._W)
        image = residual + drift * self._apply(residual)
        curvature = (residual * image).sum(axis=0)
        step = (residual * residual).sum(axis=0) / np.where(curvature > 0, curvature, 1.0)
        self._correction = step * residual
