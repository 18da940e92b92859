"""Which rows does a model still hold?  All of them, in their order, until its encoder is final.

A model that is to change its encoder needs the rows themselves: the memories are sums over features
of the old one. Rows are small, though. A thousand of them fit into a few lines of A.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count, check_inputs, check_targets, check_weights
from losse.ftl.memory import NotLearnedError
from losse.storage.state import State, StateReader
from losse.typing import Array

MOST_ROWS = 2**62
SAME_WEIGHT = 1e-9
"""Two weights that differ by less than this share are the same but for rounding."""


@dataclass(frozen=True)
class Rows:
    """Inputs, targets (n, n_outputs) and weights in the units of the memories."""

    X: Array
    Y: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: slice) -> "Rows":
        return Rows(self.X[part], self.Y[part], self.weights[part])

    def __add__(self, other: "Rows") -> "Rows":
        return joined([self, other])

    def weighing(self, weights: Array) -> "Rows":
        """The same rows with other weights."""
        return Rows(self.X, self.Y, weights)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    columns = ([getattr(part, name) for part in parts] for name in ("X", "Y", "weights"))
    return Rows(*(np.concatenate(column) for column in columns))


class Past:
    """All rows so far."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self._parts = [Rows(np.empty((0, n_features)), np.empty((0, n_outputs)), np.empty(0))]

    @property
    def rows(self) -> Rows:
        """All rows, in the order in which they were learned."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return self._parts[0]

    def add(self, rows: Rows) -> None:
        """Keep more rows."""
        self._parts.append(Rows(rows.X.copy(), rows.Y.copy(), rows.weights.copy()))

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
        """What a checkpoint keeps."""
        return vars(self.rows).copy()

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        n = saved.length("weights")
        (empty,) = self._parts
        shapes = {"X": (n, empty.X.shape[1]), "Y": (n, empty.Y.shape[1]), "weights": (n,)}
        self._parts = [Rows(*(saved.array(name, shape) for name, shape in shapes.items()))]
        if not (self._parts[0].weights > 0).all():
            saved.refuse("weights are not all above zero")


Source = Callable[[], tuple[Any, ...]]


def check_past(past: Any) -> None:
    """Raise unless ``past`` is None, a number of rows or something to call."""
    if past is None or callable(past):
        return
    try:
        check_count("past", past)
    except TypeError:
        raise TypeError(
            f"past={past!r} must be None, a number of rows to keep, or a function that returns the "
            "rows learned so far as (X, y) or (X, y, sample_weight)."
        ) from None
    if past > MOST_ROWS:
        raise ValueError(f"past={past!r} is more than the {MOST_ROWS} rows that can be kept.")


def rows_of(source: Source, model: Any) -> Rows:
    """What a source of past data returns, checked, with weights that sum to the memories' total.

    Without weights of its own, the latest row is the most recent one for a discount.
    """
    given = tuple(source())
    if len(given) not in (2, 3):
        raise ValueError(
            f"past() returned {len(given)} arrays: return X, y or X, y, sample_weight."
        )
    X = check_inputs(model, given[0], reset=False)
    Y = check_targets(given[1], len(X), model.n_outputs_).reshape(len(X), -1)
    if len(given) == 3:
        weights = check_weights(given[2], len(X))
    else:
        weights = model.discount ** np.arange(len(X) - 1.0, -1.0, -1.0)
    counted = weights > 0
    total = model._solver.memory.total
    if weights.sum() != total:
        weights = weights * (total / weights.sum())
    return Rows(X[counted], Y[counted], weights[counted])
