"""Rows that a model keeps, in their order, until its encoder is final.

A model that is to change its encoder needs the rows themselves: the memories are sums over features
of the old one. Rows are small, though. A thousand of them fit into a few lines of A.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from losse.ftl.memories.base import NotLearnedError
from losse.storage.state import State, StateReader
from losse.typing import Array

LOOSE = 64
"""Parts that are joined to one: tens of thousands would take a while."""
SAME_WEIGHT = 1e-9
"""Two weights that differ by less than this share are the same but for rounding."""


@dataclass(frozen=True)
class Rows:
    """Inputs, targets (n, n_outputs) and weights."""

    X: Array
    Y: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: slice) -> "Rows":
        return self.take(part)

    def take(self, which: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> "Rows":
        """Some of the rows: those of row numbers, a mask or a slice."""
        return Rows(self.X[which], self.Y[which], self.weights[which])

    def __add__(self, other: "Rows") -> "Rows":
        return joined([self, other])

    def copy(self) -> "Rows":
        """The same rows in memory of their own."""
        return Rows(self.X.copy(), self.Y.copy(), self.weights.copy())

    def weighing(self, weights: Array) -> "Rows":
        """The same rows with other weights."""
        return Rows(self.X, self.Y, weights)

    def parts(self, size: int) -> Iterator["Rows"]:
        """These rows, at most ``size`` at a time."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self[start : start + size]


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    columns = ([getattr(part, name) for part in parts] for name in ("X", "Y", "weights"))
    return Rows(*(np.concatenate(column) for column in columns))


class KeptRows:
    """All rows so far, with the weights that they have in the memories."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self._parts = [Rows(np.empty((0, n_features)), np.empty((0, n_outputs)), np.empty(0))]
        self._loose = 0  # of the last parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def rows(self) -> Rows:
        """All rows, in the order in which they were learned."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        self._loose = 0
        return self._parts[0]

    def add(self, rows: Rows) -> None:
        """Keep a copy of more rows."""
        self.hold(rows.copy())

    def hold(self, rows: Rows) -> None:
        """Keep more rows, which nobody else changes."""
        self._parts.append(rows)
        self._loose += 1
        if self._loose == LOOSE:
            self._parts[-LOOSE:] = [joined(self._parts[-LOOSE:])]
            self._loose = 0

    def scale(self, factor: float) -> None:
        """Multiply the weight of every row by ``factor``."""
        self._parts = [self.rows.weighing(self.rows.weights * factor)]

    def places(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Where these rows are held, each once; raises `NotLearnedError` if one is not."""
        mine = self.rows
        left = np.ones(len(mine.weights), dtype=bool)
        found = np.empty(len(rows.weights), dtype=np.int64)
        for k, (x, y, weight) in enumerate(zip(rows.X, rows.Y, rows.weights, strict=True)):
            alike = left & (abs(mine.weights - weight) <= SAME_WEIGHT * weight)
            alike &= np.equal(mine.X, x).all(axis=1) & np.equal(mine.Y, y).all(axis=1)
            if not alike.any():
                raise NotLearnedError()
            found[k] = np.flatnonzero(alike)[-1]
            left[found[k]] = False
        return found

    def drop(self, places: npt.NDArray[np.int64]) -> None:
        """Forget the rows that are held in some places."""
        rest = np.delete(np.arange(len(self.rows)), places)
        mine = self.rows
        self._parts = [Rows(mine.X[rest], mine.Y[rest], mine.weights[rest])]

    def state(self) -> State:
        """Values for a checkpoint."""
        rows = self.rows
        return {"X": rows.X, "Y": rows.Y, "weights": rows.weights}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        n = saved.length("weights")
        (empty,) = self._parts
        shapes = {"X": (n, empty.X.shape[1]), "Y": (n, empty.Y.shape[1]), "weights": (n,)}
        self._parts = [Rows(*(saved.array(name, shape) for name, shape in shapes.items()))]
        if not (self._parts[0].weights > 0).all():
            saved.refuse("weights are not all above zero")
