r"""The leader, once samples are many: the inverse :math:`P = (A + \lambda_0 I)^{-1}`, kept current.

A batch changes P by a matrix of low rank (Woodbury's identity, the recursive form of appendix B);
such changes are collected and pushed into P together.

The true lambda = ridge * total moves away from lambda_0 in the meantime, and with it the leader
from the weights. How far is known at all times: with d = lambda - lambda_0, the residual
R = B - (A + lambda I) W changes by -d times the step when W follows a batch, and the objective
exceeds its minimum by at most ||R||^2 / lambda. When that is more than `EXCESS` of the objective,
W is corrected by P R; since (A + lambda I) P is the identity but for d P, one correction removes
most of the excess. When total has grown by `GROWTH`, P is made anew.
"""

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotri

from losse._kernels.blas import solve_lower
from losse._kernels.block_update import rows_times
from losse._kernels.inverse import combine_rows, dot_rows, mirror
from losse._kernels.simd import aligned, padded
from losse.encoders import Features, SparseFeatures
from losse.encoders.features import Array
from losse.ftl.memory import Memory
from losse.ftl.solver import ridge_cholesky

GROWTH = 5.0
EXCESS = 0.008
PENDING = 256
CORRECTIONS = 20
"""Far more than it takes while P is accurate."""


class TrackedInverse:
    """P and the weights that follow the leader with its help."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        size = padded(memory.dimension)
        self._P = aligned((size, size))
        self._pending = aligned((PENDING, size))
        self.weights = aligned(memory.B.shape)
        self.rebuild()

    def rebuild(self) -> None:
        """Make P anew from the memories, for a lambda in the middle of what is to come."""
        D = self.memory.dimension
        self._lambda = self.ridge * self.memory.total
        factor, self._own_lambda = ridge_cholesky(
            self.memory.square(), self._lambda * np.sqrt(GROWTH)
        )
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        self._P[:D, :D] = inverse.T  # LAPACK's lower triangle is our upper one
        mirror(self._P)
        self._count = 0
        np.matmul(self._P[:D, :D], self.memory.B, out=self.weights)
        self._residual = (self._own_lambda - self._lambda) * self.weights
        self._correct()

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Follow a batch that is already in the memories."""
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        outgrown = self._lambda > self._own_lambda * np.sqrt(GROWTH)
        if outgrown or len(features) > self.memory.dimension // 2:  # or dearer to follow
            self.rebuild()
            return
        self._residual -= (self._lambda - before) * self.weights
        root = np.sqrt(weights)
        try:
            for start in range(0, len(features), PENDING):
                part = slice(start, start + PENDING)
                self._follow(features[part].scaled(root[part]), Y[part] * root[part, None])
        except np.linalg.LinAlgError:  # rounding has made P indefinite
            self.rebuild()
            return
        if not self._correct():
            self.rebuild()

    def _follow(self, features: Features, Y: Array) -> None:
        """P -= T^T T, W += T^T L^-1 (Y - Phi W), where L L^T = I + Phi P Phi^T, T = L^-1 Phi P."""
        n = len(features)
        if self._count + n > PENDING:
            self._push()
        T = self._times_inverse(features)
        L = np.linalg.cholesky(np.eye(n) + self._inner(features, T))
        solve_lower(L, T)
        error = aligned(Y.shape)
        features.times(self.weights, error)
        np.subtract(Y, error, out=error)
        solve_lower(L, error)
        step = T[:, : len(self.weights)].T @ error
        self.weights += step
        self._residual -= (self._lambda - self._own_lambda) * step
        self._pending[self._count : self._count + n] = T
        self._count += n

    def _correct(self) -> bool:
        """Steepest descent, preconditioned by P, until the certificate holds; False if it fails."""
        drift = self._lambda - self._own_lambda
        W, R = self.weights, self._residual
        for _ in range(CORRECTIONS):
            objective = self.memory.objective(W, R, self._lambda)
            if (R * R).sum() <= EXCESS * self._lambda * objective:
                return True
            Z = self._apply(R)
            image = R + drift * Z  # (A + lambda I) Z
            curvature = (Z * image).sum(axis=0)
            length = (R * Z).sum(axis=0) / np.where(curvature > 0, curvature, 1.0)
            W += length * Z
            R -= length * image
        return False

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

    def _apply(self, X: Array) -> Array:
        """P X, with what is pending."""
        D = len(X)
        out = aligned(X.shape)
        rows_times(self._P[:, :D], np.arange(D), D, X, out)
        pending = self._pending[: self._count, :D]
        out -= pending.T @ (pending @ X)
        return out

    def _push(self) -> None:
        """P -= T^T T."""
        T = self._pending[: self._count].T
        dsyrk(-1.0, T, beta=1.0, c=self._P.T, lower=True, overwrite_c=True)
        mirror(self._P)
        self._count = 0
