"""Regressors of River behind `partial_fit` and `predict`, with River's default parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from losse.typing import Array


def _mondrian_forest(seed: int) -> Any:
    from river import forest

    return forest.AMFRegressor(seed=seed)


def _adaptive_forest(seed: int) -> Any:
    from river import forest

    return forest.ARFRegressor(seed=seed)


def _hoeffding_tree(seed: int) -> Any:
    from river import tree

    return tree.HoeffdingTreeRegressor()


def _nearest_neighbours(seed: int) -> Any:
    from river import neighbors

    # The default engine searches the same window, several times as slowly with one feature.
    return neighbors.KNNRegressor(engine=neighbors.LazySearch(window_size=1000))


REGRESSORS: dict[str, Callable[[int], Any]] = {
    "AMFRegressor": _mondrian_forest,
    "ARFRegressor": _adaptive_forest,
    "HoeffdingTreeRegressor": _hoeffding_tree,
    "KNNRegressor": _nearest_neighbours,
}
"""Those of River that can learn a non-linear function, by name."""


class RiverRegressor:
    """One of River's regressors, fed row by row.

    >>> model = RiverRegressor("KNNRegressor", seed=0)
    >>> model.partial_fit(np.array([[0.0], [1.0]]), np.array([1.0, 1.0]))
    >>> model.predict(np.array([[0.5]]))
    array([1.])
    """

    def __init__(self, name: str, seed: int) -> None:
        self._model = REGRESSORS[name](seed)

    def partial_fit(self, X: Array, y: Array) -> None:
        """Learn the rows of X one after the other."""
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            self._model.learn_one(dict(enumerate(row)), target)

    def predict(self, X: Array) -> Array:
        """Predict each row of X."""
        return np.array([self._model.predict_one(dict(enumerate(row))) for row in X.tolist()])
