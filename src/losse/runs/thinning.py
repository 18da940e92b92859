"""Thinning of long curves: few points that keep every peak and every dip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

POINTS = 1000
"""Points that a curve is reduced to unless the caller asks otherwise; a screen shows no more."""


def thinned(
    curve: Sequence[Sequence[float]] | npt.NDArray[Any], points: int = POINTS
) -> npt.NDArray[np.float64]:
    """Reduce a curve to at most so many of its points, (n, 2).

    The curve is cut into pieces of equally many points. Of each the lowest and the highest are
    kept, so an outlier stays visible; the first point and the last are kept, too. NaN counts as
    no value, and a piece of nothing else keeps its first.

    >>> thinned([(0, 1.0), (1, 5.0), (2, 0.0), (3, 1.0), (4, 2.0), (5, 2.5)], 4).tolist()
    [[0.0, 1.0], [1.0, 5.0], [2.0, 0.0], [5.0, 2.5]]
    """
    rows = np.asarray(curve, dtype=np.float64).reshape(-1, 2)
    n = len(rows)
    if n <= max(points, 2):
        return rows
    size = -(-(n - 2) // max((points - 2) // 2, 1))
    inner = rows[1:-1, 1]
    padded = np.full(-(-len(inner) // size) * size, np.nan)
    padded[: len(inner)] = inner
    pieces = padded.reshape(-1, size)
    first = np.arange(len(pieces)) * size + 1
    lowest = first + np.argmin(np.where(np.isnan(pieces), np.inf, pieces), axis=1)
    highest = first + np.argmax(np.where(np.isnan(pieces), -np.inf, pieces), axis=1)
    return rows[np.unique(np.concatenate([[0], lowest, highest, [n - 1]]))]
