"""Contenders: the methods that they have, and a store of rows for those that keep them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from losse.typing import Array


class Contender(Protocol):
    """A learner of a stream in small batches, which can be asked at any time."""

    def learn(self, X: Array, Y: Array) -> None:
        """Take in the next rows."""

    def refresh(self) -> None:
        """Before a checkpoint: those that keep all rows and fit them in one go do it now."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""

    @property
    def nbytes(self) -> int:
        """Memory of everything it needs to go on learning, in bytes."""


@runtime_checkable
class Doubting(Protocol):
    """A learner that says how sure it is."""

    def predict_interval(self, X: Array, coverage: float) -> tuple[Array, Array]:
        """Bounds between which a share of the targets should be."""


class Kept:
    """All rows so far in their order, in arrays that double."""

    def __init__(self) -> None:
        self._n = 0
        self._stores: list[Array] = []

    def add(self, X: Array, Y: Array) -> None:
        """Append rows."""
        end = self._n + len(X)
        if not self._stores:
            self._stores = [np.empty((0, X.shape[1])), np.empty((0, Y.shape[1]))]
        if end > len(self._stores[0]):
            self._stores = [np.resize(a, (max(2 * len(a), end), a.shape[1])) for a in self._stores]
        for store, new in zip(self._stores, (X, Y), strict=True):
            store[self._n : end] = new
        self._n = end

    def rows(self) -> tuple[Array, Array]:
        """Inputs and targets."""
        return self.X, self.Y

    @property
    def X(self) -> Array:  # noqa: N802
        """The inputs."""
        return self._stores[0][: self._n]

    @property
    def Y(self) -> Array:  # noqa: N802
        """The targets."""
        return self._stores[1][: self._n]

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.X.nbytes + self.Y.nbytes if self._n else 0
