r"""Sample space: the leader of few samples, by a linear system with one unknown per sample.

With fewer samples than features, :math:`W = \Phi^T (\Phi \Phi^T + \lambda I)^{-1} Y` is cheaper
than the normal equations. The Cholesky factor grows with every batch.

Its lambda is fixed when it is made, while the true one, ridge * total, moves on. A ridge that is
off by a little raises the objective by less than a percent (`ridge_excess`); when it is off by
more than `DRIFT`, the factor is made anew.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from losse._kernels.blas import solve_lower
from losse._kernels.simd import aligned
from losse.encoders.features import Features
from losse.ftl.solvers.base import raised
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, blocks

if TYPE_CHECKING:
    from losse.ftl.targets import Change

DRIFT = 1.15


def ridge_excess(ratio: float) -> float:
    r"""How far the weights for a wrong lambda' = ratio * lambda can be from the best objective.

    At most (r - 1)^2 / (4 r) of the minimum: in an eigendirection of A with eigenvalue
    :math:`\mu` the excess is
    :math:`\mu (\lambda' - \lambda)^2 / ((\mu + \lambda')^2 \lambda)` of the minimum, largest at
    :math:`\mu = \lambda'`.

    >>> round(ridge_excess(DRIFT), 4)
    0.0049
    """
    return (ratio - 1) * (1 - 1 / ratio) / 4


class InverseTrace(NamedTuple):
    """Trace of (Phi Phi^T + lambda I)^-1 for the first samples, and for which these are."""

    value: float
    size: int
    penalty: float


class SampleSpace:
    """Up to ``limit`` samples, and the weights that fit them best.

    ``no_features`` are features of the kind to come, without a row.
    """

    def __init__(self, limit: int, no_features: Features, n_outputs: int, width: int) -> None:
        self.limit = limit
        self.size = 0
        # Reserved at full size; the system provides pages only as they are written.
        self._gram = aligned((limit, limit))
        self._factor = aligned((limit, limit))
        self._n_outputs = n_outputs
        self._half = np.zeros((limit, width))  # L^-1 Y
        self._targets = np.zeros((limit, width))
        self._kept = no_features.room(limit)
        self._ridge = np.inf

    @property
    def features(self) -> Features:
        """All samples' features, each times the root of its weight."""
        return self._kept[: self.size]

    @property
    def penalty(self) -> float:
        """Lambda of the factor."""
        return self._ridge

    def half_solve(self, columns: Array) -> None:
        """Overwrite columns, one row per sample, by L^-1 of them."""
        n = self.size
        solve_lower(self._factor[:n, :n], columns)

    def leverages(self, features: Features) -> Array:
        """phi^T (A + lambda I)^-1 phi of rows."""
        cross = self.features.gram(features)
        self.half_solve(cross)
        squares = (features.values**2).sum(axis=1) - (cross**2).sum(axis=0)
        return np.asarray(squares / self._ridge)

    def rests(self, features: Features) -> Array:
        """1 - w phi^T (A + lambda I)^-1 phi of samples that leave little to others.

        Without its rounding: this is lambda times the sample's entry in the diagonal of
        (Phi Phi^T + lambda I)^-1. Which sample it is says its prediction, nearly its own target.
        """
        L = self._factor[: self.size, : self.size]
        shares = self.features.gram(features)
        solve_lower(L, shares)
        solve_lower(L, shares, transposed=True)
        columns = np.zeros_like(shares)
        columns[abs(shares).argmax(axis=0), np.arange(len(features))] = 1.0
        solve_lower(L, columns)
        return np.asarray(self._ridge * (columns**2).sum(axis=0))

    def inverse_trace(self, known: InverseTrace | None = None) -> InverseTrace:
        """Trace of (Phi Phi^T + lambda I)^-1, starting from an earlier one.

        It is the sum of squares in L^-1, whose rows stay while L grows. New ones are
        [-L_22^-1 L_21 L_11^-1, L_22^-1].
        """
        n, L = self.size, self._factor
        if known is None or known.penalty != self._ridge or known.size > n:
            known = InverseTrace(0.0, 0, self._ridge)
        first = known.size
        if first == n:
            return known
        corner = np.eye(n - first)
        solve_lower(L[first:n, first:n], corner)
        value = known.value + float((corner**2).sum())
        if first:
            left = np.empty((first, n - first))
            left[:] = (corner @ L[first:n, :first]).T
            solve_lower(L[:first, :first], left, transposed=True)
            value += float((left**2).sum())
        return InverseTrace(value, n, self._ridge)

    def has_room(self, n: int) -> bool:
        """Whether n more samples may be added."""
        return self.size + n <= self.limit

    def add(self, features: Features, Y: Array, weights: Array, ridge: float) -> Array:
        """Take a batch in; ``ridge`` is lambda after it.

        Returns the leverages of its rows before, each times its weight.
        """
        root = np.sqrt(weights)
        n, m = self.size, self.size + len(features)
        features = features.scaled(root)
        self._kept.put(n, features)
        self._targets[n:m] = Y * root[:, None]
        self.size = m
        self._gram[:m, n:m] = self.features.gram(features)
        self._gram[n:m, :n] = self._gram[:n, n:m].T
        first = n
        if not 1 / DRIFT <= ridge / self._ridge <= DRIFT:
            first, self._ridge = 0, ridge * DRIFT
        self._factorise(first)
        # The last rows of the factor make lambda (I + Phi (A + lambda I)^-1 Phi^T).
        squares = (self._factor[n:m, n:m] ** 2).sum(axis=1)
        return np.asarray(squares / self._ridge - 1.0)

    def adding(self, features: Features, Y: Array, weights: Array, ridge: float) -> Work[None]:
        """What `add` does, as work in units."""
        active, n = features.values.shape[1], self.size + len(features)
        for part in blocks(len(features), 20.0 * active * n):
            self.add(features[part], Y[part], weights[part], ridge)
            yield (part.stop - part.start) * 20.0 * active * self.size

    def absorb(
        self, other: "SampleSpace", factor: float, change: "Change | None", ridge: float
    ) -> None:
        """Take the samples of another space in, their weights times ``factor``."""
        if other.size:
            targets = other._targets[: other.size]
            Y = targets if change is None else change.columns(targets)
            self.add(other.features, Y, np.full(other.size, factor), ridge)

    def excess(self, ridge: float) -> float:
        """How far the weights can be from the best objective for this lambda, as a share of it."""
        return ridge_excess(self._ridge / ridge)

    def settle(self, ridge: float) -> None:
        """Make the factor anew for exactly this lambda."""
        self._ridge = ridge
        self._factorise(0)

    def state(self) -> State:
        """Values for a checkpoint."""
        n, S = self.size, self._n_outputs
        if n == 0:
            return {"size": 0}
        return {
            "size": n,
            "ridge": self._ridge,
            "gram": self._gram[:n, :n],
            "factor": self._factor[:n, :n],
            "half": self._half[:n, :S],
            "targets": self._targets[:n, :S],
            **self.features.state(),
        }

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        n = saved.count("size", at_most=self.limit)
        if n == 0:
            return
        self.size = n
        self._ridge = saved.positive("ridge")
        saved.array("gram", out=self._gram[:n, :n])
        saved.array("factor", out=self._factor[:n, :n])
        saved.columns("half", out=self._half[:n], width=self._n_outputs)
        saved.columns("targets", out=self._targets[:n], width=self._n_outputs)
        self._kept.put(0, self._kept.restored(saved, n))

    def leader(self) -> Array:
        """The weights that fit the samples best, (D, S)."""
        dual, features = self._dual(), self.features
        W = aligned((features.dimension, dual.shape[1]))
        features.add_transposed(dual, np.ones(self.size), W)
        return W

    def residuals(self) -> Array:
        """Targets less their predictions, each row times the root of its weight.

        As lambda (Phi Phi^T + lambda I)^-1 Y, so that rounding hides none of a near interpolation.
        """
        return self._ridge * self._dual()

    def _dual(self) -> Array:
        dual = self._half[: self.size].copy()
        solve_lower(self._factor[: self.size, : self.size], dual, transposed=True)
        return dual

    def leader_for(self, ridge: float) -> Array:
        """The weights that fit best for another lambda, (D, S)."""
        n = self.size
        factor = self._gram[:n, :n].copy()
        np.einsum("ii->i", factor)[:] += max(ridge, 1e-14 * float(factor.diagonal().max()))
        dual = np.asarray(cho_solve(cho_factor(factor, overwrite_a=True), self._targets[:n]))
        W = aligned((self.features.dimension, dual.shape[1]))
        self.features.add_transposed(dual, np.ones(n), W)
        return W

    def _factorise(self, n: int) -> None:
        """Make the factor's rows from n on; where rounding forbids it, raise the ridge."""
        m = self.size
        while not self._extend(n, m):
            largest = float(self._gram[:m, :m].diagonal().max())
            n, self._ridge = 0, raised(self._ridge, largest)

    def _extend(self, n: int, m: int) -> bool:
        """Make the factor's rows n to m, given those before; False if that cannot be done."""
        L = self._factor
        cross = self._gram[:n, n:m].copy()
        solve_lower(L[:n, :n], cross)
        L[n:m, :n] = cross.T
        rest = self._gram[n:m, n:m] - cross.T @ cross
        np.einsum("ii->i", rest)[:] += self._ridge
        try:
            L[n:m, n:m] = np.linalg.cholesky(rest)
        except np.linalg.LinAlgError:
            return False
        half = self._targets[n:m] - cross.T @ self._half[:n]
        solve_lower(L[n:m, n:m], half)
        self._half[n:m] = half
        return True
