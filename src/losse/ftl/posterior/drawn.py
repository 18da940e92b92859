r"""`DrawnPosterior`: from weights that are drawn at random from the posterior.

With M of `DRAWS` columns, each a draw from :math:`N(0, (A + \lambda I)^{-1} / m)`, the leverage
:math:`\phi^T (A + \lambda I)^{-1} \phi` is :math:`|M^T \phi|^2` on average, and deviates from it by
:math:`\sqrt{2 / m}` of it: m more predictions instead of a product of all active features with
each other. The same draws serve for all rows, so that deviations change smoothly with them.

Draws follow the rows learned as weights do, each with targets of its own that are pure noise:

.. math:: M \leftarrow M + K (R - \Phi M),

with the inverse of the solver in the gain :math:`K = P \Phi^T`. That inverse has a lambda of its
own. But with any gain, draws from the distribution before become draws from one that has the rows
in it, only that it is wider than it could be, and by the square of what the gain misses. A lambda
that has grown is one row for every feature, :math:`\Phi = \sqrt{\delta} I`.
"""

import numpy as np
from scipy.linalg.lapack import dtrtrs

from losse._kernels.simd import aligned
from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.posterior.base import DRIFT
from losse.ftl.posterior.following import FollowingPosterior
from losse.ftl.solvers.base import Solver, ridge_cholesky
from losse.ftl.targets import Targets
from losse.typing import Array

DRAWS = 64
"""m: leverages are off by eighteen percent, deviations of a new target by a fraction of nine."""
ACTIVE = 256
"""Active features beyond which draws take less than a product of all with each other."""
GROWN = 2.0
"""Ratio of two lambdas beyond which one step is too long, and draws are made anew."""
TOGETHER = 128
"""Rows whose gains are found together."""


class DrawnPosterior(FollowingPosterior):
    """With the solver's inverse, for models with many active features."""

    exact = False

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        super().__init__(encoder, solver, targets)
        self._rng = np.random.default_rng(0)
        D, self._first = solver.weights.shape  # the first draw's column
        # Beside the weights, so that both predict at once.
        self._table = aligned((D, self._first + DRAWS))
        factor, self._own_penalty = ridge_cholesky(self._memory.square(), solver.penalty)
        self._draws[:] = dtrtrs(factor, self._signs(D), lower=1, trans=1)[0]

    @property
    def _draws(self) -> Array:
        """M, (D, m)."""
        return self._table[:, self._first :]

    @property
    def serves(self) -> bool:
        """Whether what it keeps can follow, in one step."""
        grown = self._solver.penalty / self._own_penalty
        near = 1 / DRIFT <= grown <= GROWN and self._solver.inverse is not None
        return near and super().serves

    def _follow(self) -> None:
        more = self._solver.penalty - self._own_penalty
        drifted = more > (DRIFT - 1.0) * self._own_penalty
        if not self._ahead and not drifted:
            return
        inverse = self._solver.inverse
        assert inverse is not None
        D, change = len(self._draws), np.zeros(self._draws.shape)
        for features in self._waiting(TOGETHER):
            missed = self._signs(len(features)) - self._drawn(features)
            change += inverse.rows_solved(features).T @ missed
        if drifted:
            change += inverse.solved(np.sqrt(more) * self._signs(D) - more * self._draws)
            self._own_penalty += more
        self._draws[:] += change

    def _signs(self, rows: int) -> Array:
        """Noise of variance 1 / m, (rows, m)."""
        return self._rng.choice([-1.0, 1.0], size=(rows, DRAWS)) / np.sqrt(DRAWS)

    def _trace(self) -> float:
        return float((self._draws**2).sum())

    def _leverage(self, features: Features) -> Array:
        return np.asarray((self._drawn(features) ** 2).sum(axis=1))

    def _drawn(self, features: Features) -> Array:
        """Phi M."""
        out = aligned((len(features), self._table.shape[1]))
        features.times(self._table, out)
        return out[:, self._first :]

    def _predict(self, X: Array) -> tuple[Array, Array]:
        self._table[:, : self._first] = self._solver.weights
        out = aligned((len(X), self._table.shape[1]))
        self._encoder.times(X, self._table, out)
        drawn = out[:, self._first :]
        return out[:, : self._first], np.einsum("ij,ij->i", drawn, drawn)
