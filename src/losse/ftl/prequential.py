"""`Prequential`: test-then-train error of a model over its life.

Each batch is predicted before it is learned (prequential, or progressive, validation). In its
first call, before it has learned anything, a model predicts zero.
"""

from dataclasses import dataclass

import numpy as np

from losse.scaling import RunningMoments
from losse.storage.state import State, StateReader
from losse.typing import Array

POINTS = 256
"""Points of a curve, at most: then every second one is dropped."""


@dataclass(frozen=True)
class Curve:
    """Errors of predictions made before learning, over the life of a model.

    Attributes
    ----------
    n_samples
        Rows learned at each point.
    mse
        Mean squared error per output of the rows between the point before and this one,
        (points, outputs).
    nmse
        The same over the variance of the targets so far, averaged over outputs: 1 is no better than
        their mean. Outputs that never vary are left out.
    """

    n_samples: Array
    mse: Array
    nmse: Array


class Prequential:
    """Sums of squared errors, and the spread of targets to compare them with."""

    def __init__(self, n_outputs: int) -> None:
        self.loss = np.zeros(n_outputs)
        """Squared errors of all predictions so far, weighted like the memories."""
        self._rows = 0
        self._errors = np.zeros(n_outputs)
        self._targets = RunningMoments(n_outputs)
        self._stride = 1
        # One row per point: rows, weight, errors and deviations up to there.
        self._points = np.zeros((POINTS, 2 + 2 * n_outputs))
        self._count = 0

    def add(self, predictions: Array, Y: Array, weights: Array, grown: Array) -> None:
        """Take in predictions of rows; ``grown`` are their weights in the memories."""
        squares = Y - predictions
        squares *= squares
        errors = weights @ squares
        self._errors += errors
        self.loss += errors if grown is weights else grown @ squares
        self._targets.add(Y, weights)
        self._rows += len(Y)
        if self._count == 0 or self._rows >= self._points[self._count - 1, 0] + self._stride:
            self._add_point()

    @property
    def spread(self) -> Array:
        """Variance of each output so far; infinite for those that never vary."""
        variance = self._targets.variance
        varies = variance > (1e-12 * self._targets.mean) ** 2
        return np.where(varies, variance, np.inf)

    @property
    def nmse(self) -> float:
        """Of all rows but those of the first call; NaN if there are no others."""
        if self._count == 0 or self._points[0, 0] == self._rows:
            return float("nan")
        S = len(self.loss)
        first = self._points[0]
        errors = (self._errors - first[2 : 2 + S]) / (self._targets.weight - first[1])
        return _over(errors, self.spread)

    def curve(self) -> Curve:
        """Points at growing numbers of rows."""
        S = len(self.loss)
        points = self._points[: self._count]
        weight = np.diff(points[:, 1])
        mse = np.diff(points[:, 2 : 2 + S], axis=0) / weight[:, None]
        spread = points[1:, 2 + S :] / points[1:, 1:2]
        nmse = np.array(
            [_over(e, np.where(v > 0, v, np.inf)) for e, v in zip(mse, spread, strict=True)]
        )
        return Curve(points[1:, 0].copy(), mse, nmse)

    def state(self) -> State:
        """Values for a checkpoint."""
        return self._targets.state() | {
            "loss": self.loss, "rows": self._rows, "errors": self._errors, "stride": self._stride,
            "count": self._count, "points": self._points[: self._count],
        }  # fmt: skip

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._targets.restore(saved)
        saved.array("loss", out=self.loss)
        saved.array("errors", out=self._errors)
        self._rows = saved.count("rows")
        self._stride = saved.count("stride")
        self._count = saved.count("count", at_most=POINTS)
        saved.array("points", out=self._points[: self._count])

    def _add_point(self) -> None:
        if self._count == POINTS:
            half = POINTS // 2
            self._points[:half] = self._points[::2]
            self._count = half
            self._stride *= 2
        targets = self._targets
        self._points[self._count] = np.concatenate(
            [[self._rows, targets.weight], self._errors, targets.deviations]
        )
        self._count += 1


def _over(errors: Array, spread: Array) -> float:
    varies = np.isfinite(spread)
    return float((errors[varies] / spread[varies]).mean()) if varies.any() else 0.0
