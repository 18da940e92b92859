"""`Discounting`: the weights of rows in the memories, when older rows are to count less.

Letting the past shrink by the discount with every row is the same as letting new rows grow by its
inverse. So the memories are never touched for it. The weights are in units that grow, too: ``unit``
is the weight of the latest row.
"""

import math

import numpy as np

from losse.ftl.kept_rows import Rows
from losse.typing import Array

LARGEST_UNIT = 1e15
"""Unit at which all sums are scaled back."""
SMALLEST_WEIGHT = 1e-100
"""Weight of a row that a discount has all but forgotten."""


class Discounting:
    """Weights under a discount; with a discount of one, weights as they are given.

    Examples
    --------
    >>> discounting = Discounting(0.5)
    >>> discounting.grown(np.ones(3))
    array([2., 4., 8.])
    >>> discounting.unit
    8.0
    """

    def __init__(self, discount: float, unit: float = 1.0) -> None:
        self.discount = discount
        self.unit = unit

    @property
    def most_rows(self) -> float:
        """Rows at once whose weights stay in the range of doubles."""
        return (
            math.inf if self.discount == 1.0 else math.log(LARGEST_UNIT) / -math.log(self.discount)
        )

    @property
    def overdue(self) -> bool:
        """Whether all sums should be scaled back before more rows are learned."""
        return self.unit > LARGEST_UNIT

    def grown(self, weights: Array) -> Array:
        """Weights in the memories of rows that are learned now, one after the other."""
        if self.discount == 1.0:
            return weights
        growth = self.unit * self.discount ** -np.arange(1.0, len(weights) + 1.0)
        self.unit = float(growth[-1])
        return np.asarray(weights * growth)

    def aged(self, rows: Rows) -> Rows:
        """Rows with the weights that they have when the last of them is learned, at unit 1."""
        if self.discount == 1.0:
            return rows
        ages = np.arange(len(rows) - 1.0, -1.0, -1.0)
        return rows.weighing(np.maximum(rows.weights * self.discount**ages, SMALLEST_WEIGHT))

    def faded(self, rows: Rows, later: int) -> Rows:
        """Rows of the memories, with the weights that they have ``later`` rows later, at unit 1."""
        if self.discount == 1.0:
            return rows
        weights = rows.weights * (self.discount**later / self.unit)
        return rows.weighing(np.maximum(weights, SMALLEST_WEIGHT))
