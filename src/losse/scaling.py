"""Scaling of numbers to comparable units: by bounds, by mean and spread, or as a stream goes by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from losse.storage.state import State, StateReader
from losse.typing import Array

LIMIT = 3.0
"""Scaled inputs are clipped to [-3, 3] (appendix E of the paper)."""
WIDEST = 1e6
"""Bounds further apart are those of a number format, not of a quantity: they do not scale."""
ROUNDING = 1e-12
"""A spread below this share of the values is rounding, not information."""
SMALLEST_SPREAD = 1e-100
"""A spread below this has an inverse that leaves the range of doubles in products."""


class Scaling(NamedTuple):
    """An affine map of each column: (x - shift) * factor."""

    shift: Array
    factor: Array

    def apply(self, X: Array, limit: float | Array = np.inf) -> Array:
        """Scaled rows, clipped to [-limit, limit].

        >>> Scaling(np.array([1.0]), np.array([2.0])).apply(np.array([[0.0], [9.0]]), 3.0)
        array([[-2.],
               [ 3.]])
        """
        rows = X - self.shift
        with np.errstate(over="ignore"):  # to be clipped
            rows *= self.factor
        return np.clip(rows, -limit, limit, out=rows)


def bounded(low: npt.ArrayLike, high: npt.ArrayLike, limit: float = LIMIT) -> Scaling:
    """Map the bounds of each column to [-limit, limit].

    A column that can take one value only says nothing, and gets a factor of one.

    >>> bounded([0.0, 5.0], [6.0, 5.0])
    Scaling(shift=array([3., 5.]), factor=array([1., 1.]))
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    span = np.where(high > low, high - low, 2 * limit)
    return Scaling((low + high) / 2, 2 * limit / span)


def standard(X: Array, weights: Array | None = None) -> Scaling:
    """Subtract each column's mean and divide by its standard deviation; a constant is centred only.

    >>> standard(np.array([[1.0, 7.0], [3.0, 7.0]]))
    Scaling(shift=array([2., 7.]), factor=array([1., 1.]))
    """
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    constant = is_constant(spread, np.abs(X).max(axis=0))
    return Scaling(mean, 1.0 / np.where(constant, 1.0, spread))


def is_constant(spread: Array, size: Array, rounding: float = ROUNDING) -> npt.NDArray[np.bool_]:
    """Whether a spread is no more than the rounding of values of some size."""
    return np.asarray(spread <= np.maximum(rounding * size, SMALLEST_SPREAD))


class RunningMoments:
    """Weighted mean and squared deviations of each column of a stream, batch by batch.

    The update is that of two sets by Chan, Golub and LeVeque, which does not cancel.

    Examples
    --------
    >>> moments = RunningMoments(1)
    >>> for batch in ([[1.0], [2.0]], [[6.0]]):
    ...     moments.add(np.array(batch), np.ones(len(batch)))
    >>> moments.mean, moments.variance.round(3)
    (array([3.]), array([4.667]))
    """

    def __init__(self, width: int) -> None:
        self.weight = 0.0
        self.mean: Array = np.zeros(width)
        self.deviations: Array = np.zeros(width)

    def add(self, Y: Array, weights: Array) -> None:
        """Take in rows with their weights."""
        one = len(Y) == 1
        weight = float(weights[0] if one else weights.sum())
        mean = Y[0] if one else weights @ Y / weight
        step = mean - self.mean
        total = self.weight + weight
        self.deviations += step * step * (self.weight * weight / total)
        if not one:
            self.deviations += weights @ (Y - mean) ** 2
        self.mean += step * (weight / total)
        self.weight = total

    @property
    def variance(self) -> Array:
        """Variance of each column so far."""
        return np.asarray(self.deviations / max(self.weight, np.finfo(float).tiny))

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"weight": self.weight, "mean": self.mean, "deviations": self.deviations}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.weight = saved.number("weight", at_least=0.0)
        saved.array("mean", out=self.mean)
        saved.array("deviations", out=self.deviations)
        if (self.deviations < 0).any():
            saved.refuse("array deviations contains negative numbers")
