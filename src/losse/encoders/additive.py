"""A sum of functions of one input each, which sees thresholds and codes that smooth units blur.

Each function is linear between knots. These are quantiles of the input or, if it has few values
such as the codes of categories, all of them, so that the function is a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from losse._kernels.additive import additive_outputs
from losse.encoders.ridge_regression import ridge_fit
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work

MOST_KNOTS, ALL_KNOTS = 64, 800
"""Of an input, and of all inputs together."""
LEAST_ROWS, LEAST_KNOTS = 1000, 8
"""Of fewer rows, or with fewer knots of each input, functions say too little."""
RIDGES = (1e-4, 1e-3, 1e-2)
# Operations that take as long as finding the place of a number among knots.
_PLACE = 500.0


@dataclass(frozen=True, eq=False)
class Additive:
    """Knots of one input after the other, where each input's end, and values at them.

    ``values`` is (knots + 1, outputs); its last row is the constant.
    """

    knots: Array
    ends: npt.NDArray[np.int64]
    values: Array

    def predict(self, Z: Array) -> Array:
        """Sums of the functions, (n, outputs).

        >>> step = Additive(np.array([0.0, 1.0, 2.0]), np.array([3]), np.array([[0.0, 1, 1, 5]]).T)
        >>> step.predict(np.array([[-9.0], [0.25], [1.5]]))
        array([[5.  ],
               [5.25],
               [6.  ]])
        """
        out = np.empty((len(Z), self.values.shape[1]))
        additive_outputs(np.ascontiguousarray(Z), self.knots, self.ends, self.values, out)
        return out

    def state(self) -> State:
        """What a checkpoint keeps."""
        return {"knots": self.knots, "ends": self.ends, "values": self.values}

    @classmethod
    def read(cls, saved: StateReader, n_features: int, n_outputs: int) -> Additive:
        """What `state` has described."""
        n_knots = saved.length("knots")
        knots = saved.array("knots", (n_knots,))
        ends = saved.array("ends", (n_features,), np.int64)
        lengths = np.diff(ends, prepend=0)
        if n_features == 0 or ends[-1] != n_knots or (lengths < 2).any():
            saved.refuse(f"ends of knots {ends.tolist()} do not divide {n_knots} knots")
        rises = np.diff(knots) > 0
        rises[ends[:-1] - 1] = True  # from one input to the next
        if not rises.all():
            saved.refuse("knots do not ascend")
        return cls(knots, ends, saved.array("values", (n_knots + 1, n_outputs)))


def fit_additive(Z: Array, Q: Array, weights: Array) -> Work[tuple[Additive, Array] | None]:
    """The best sum of functions, and its predictions of each row by the fit of all others.

    None if there are too few rows, or too many inputs.
    """
    n, d = Z.shape
    most = min(MOST_KNOTS, ALL_KNOTS // d)
    if n < LEAST_ROWS or most < LEAST_KNOTS:
        return None
    knots = [_knots(column, most) for column in Z.T]
    ends = np.cumsum([len(own) for own in knots])
    yield n * d * _PLACE
    root = np.sqrt(weights / weights.mean())[:, None]
    F = np.zeros((n, ends[-1] + 1))
    F[:, -1] = 1.0
    rows = np.arange(n)
    for own, column, end in zip(knots, Z.T, ends, strict=True):
        z = np.clip(column, own[0], own[-1])
        low = np.clip(np.searchsorted(own, z, side="right") - 1, 0, len(own) - 2)
        share = (z - own[low]) / (own[low + 1] - own[low])
        at = end - len(own) + low
        F[rows, at], F[rows, at + 1] = 1.0 - share, share
        yield n * _PLACE
    fit = yield from ridge_fit(F * root, Q * root, RIDGES)
    residual = yield from fit.residuals(slice(None))
    return Additive(np.concatenate(knots), ends, fit.W), Q - residual / root


def _knots(column: Array, most: int) -> Array:
    """At least two, ascending."""
    knots = np.unique(column)
    if len(knots) > most:
        knots = np.unique(np.quantile(column, np.linspace(0, 1, most)))
    return knots if len(knots) > 1 else knots[0] + np.array([0.0, 1.0])
