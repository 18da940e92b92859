"""How are rows brought to unit scale for learners that need it?  By mean and spread, frozen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Scaling:
    """Means and standard deviations of some rows; a constant column is only centred."""

    def __init__(self, rows: Array) -> None:
        spread = rows.std(axis=0)
        self._mean = rows.mean(axis=0)
        self._spread = np.where(spread > 1e-8, spread, 1.0)

    def scale(self, rows: Array) -> Array:
        """Rows at unit scale."""
        return (rows - self._mean) / self._spread

    def unscale(self, rows: Array) -> Array:
        """Rows at their own scale again."""
        return rows * self._spread + self._mean
