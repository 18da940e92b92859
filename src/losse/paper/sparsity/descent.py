"""Gradient descent on sparse features, with which figure 7 compares follow-the-leader."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from losse import LosseEncoder
from losse._kernels.adam import adam_step
from losse._kernels.jit import kernel
from losse.encoders import Encoder
from losse.encoders.features import SparseFeatures
from losse.typing import Array


class ReachedCells(LosseEncoder):
    """Losse features without the cells that no input of `fit` reaches.

    A feature that is never active changes no prediction, with any update. A single input draws a
    curve through each grid, so of 31 x 31 cells some 50 are left, which makes figure 7 a matter of
    minutes. Cells that only later inputs reach share one more feature, which stays untrained.

    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> LosseEncoder(n_grids=10, n_bins=30, scaling=None).fit(X).dimension
    9610
    >>> ReachedCells(n_grids=10, n_bins=30, scaling=None).fit(X).dimension
    479
    """

    def fit(self, X: npt.ArrayLike, y: Any = None, sample_weight: Any = None) -> ReachedCells:
        """Draw the projection and find the cells that the rows of ``X`` reach."""
        self.__dict__.pop("_position", None)
        super().fit(X, y, sample_weight)
        reached = np.zeros(super().dimension, dtype=bool)
        reached[super().encode(np.ascontiguousarray(X, dtype=np.float64)).indices] = True
        cells = np.flatnonzero(reached)
        position = np.full(len(reached), len(cells), dtype=np.int32)
        position[cells] = np.arange(len(cells), dtype=np.int32)
        self._position = position
        return self

    @property
    def dimension(self) -> int:
        """Number of features that are left."""
        if not hasattr(self, "_position"):
            return super().dimension
        return int(self._position.max()) + 1

    def encode(self, X: Array) -> SparseFeatures:
        """The features of checked rows."""
        features = super().encode(X)
        return SparseFeatures(self._position[features.indices], features.values, self.dimension)

    def times(self, X: Array, W: Array, out: Array, columns: int | None = None) -> None:
        """out = Phi(X) W for checked rows."""
        Encoder.times(self, X, W, out)


def descend(
    features: SparseFeatures, y: Array, *, minibatch: int, learning_rate: float, adam: bool
) -> Array:
    """Weights after one step on the mean squared error of each minibatch of rows, from zero.

    Parameters
    ----------
    features
        Rows in order of arrival.
    y
        Targets.
    minibatch
        Rows per step.
    learning_rate
        Step size.
    adam
        Adam's steps instead of plain gradient descent (equation 7).

    Examples
    --------
    >>> encoder = LosseEncoder(n_grids=10, scaling=None).fit([[0.0]])
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(5000, 1))
    >>> phi = encoder.encode(x)
    >>> w = descend(phi, x[:, 0], minibatch=50, learning_rate=0.1, adam=False)
    >>> bool(np.mean((phi.matrix() @ w - x[:, 0]) ** 2) < 0.01)
    True
    """
    w = np.zeros(features.dimension)
    _descend(features.indices, features.values, y, minibatch, learning_rate, adam, w)
    return w


@kernel
def _add_gradient(indices, values, y, start, stop, w, gradient):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        predicted = 0.0
        for j in range(indices.shape[1]):
            predicted += values[i, j] * w[indices[i, j]]
        slope = 2.0 * (predicted - y[i]) / (stop - start)
        for j in range(indices.shape[1]):
            gradient[indices[i, j]] += slope * values[i, j]


@kernel
def _descend(indices, values, y, minibatch, rate, adam, w):  # type: ignore[no-untyped-def]
    gradient, mean, square = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for step, start in enumerate(range(0, len(y), minibatch)):
        _add_gradient(indices, values, y, start, min(start + minibatch, len(y)), w, gradient)
        if adam:
            adam_step(w, mean, square, gradient, rate, step + 1)
        else:
            for k in range(len(w)):
                w[k] -= rate * gradient[k]
                gradient[k] = 0.0
