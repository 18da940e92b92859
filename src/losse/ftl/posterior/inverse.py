"""`InversePosterior`: from an inverse that follows the rows learned."""

import numpy as np
from scipy.linalg.lapack import dpotri

from losse._kernels.blas import solve_lower
from losse._kernels.inverse import mirror
from losse._kernels.simd import aligned, padded
from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.capacity import require_memory
from losse.ftl.deferred import Deferred
from losse.ftl.posterior.base import DRIFT
from losse.ftl.posterior.following import FollowingPosterior
from losse.ftl.solvers.base import Solver, ridge_cholesky
from losse.ftl.targets import Targets
from losse.typing import Array

PENDING = 64
"""Rows that the inverse follows before they are pushed into it."""


class InversePosterior(FollowingPosterior):
    r"""With :math:`P = (A + \lambda I)^{-1}` at hand: D^3 operations once, then little for a row.

    P follows rows that are learned by changes of low rank (Woodbury's identity), which are
    collected and pushed into it together. Its lambda stays until it is `DRIFT` off.
    """

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        super().__init__(encoder, solver, targets)
        D = self._memory.dimension
        require_memory(
            D**2 * 8.0,
            f"return_std=True in a model of {D:,} features",
            "Use fewer features, or predict without return_std.",
        )
        size = padded(D)
        self._asked = solver.penalty
        factor, self._own_penalty = ridge_cholesky(self._memory.square(), self._asked)
        P = aligned((size, size))
        P[:D, :D] = dpotri(factor, lower=1, overwrite_c=1)[0].T  # LAPACK's lower triangle
        mirror(P)
        self._inverse = Deferred(P, sign=-1.0)

    @property
    def serves(self) -> bool:
        """Whether what it keeps can follow, and its lambda is near."""
        return super().serves and 1 / DRIFT <= self._solver.penalty / self._asked <= DRIFT

    def _follow(self) -> None:
        for features in self._waiting(PENDING):
            self._change(features)

    def _change(self, features: Features) -> None:
        """P -= T^T T with L L^T = I + Phi P Phi^T and T = L^-1 Phi P."""
        n, inverse = len(features), self._inverse
        if len(inverse.waiting) + n > PENDING:
            inverse.enter()
        T = aligned((n, len(inverse.matrix)))
        features.combine(inverse.matrix, T)
        T -= features.inner(inverse.waiting) @ inverse.waiting
        L = np.linalg.cholesky(np.eye(n) + features.inner(T))
        solve_lower(L, T)
        inverse.append(T)

    def _trace(self) -> float:
        return float(self._inverse.matrix.trace() - (self._inverse.waiting**2).sum())

    def _leverage(self, features: Features) -> Array:
        inner = features.inner(self._inverse.waiting)
        return features.quadratic(self._inverse.matrix) - (inner**2).sum(axis=1)
