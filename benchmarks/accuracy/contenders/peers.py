"""Regressors of scikit-learn and River as contenders, on standardised inputs."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.accuracy.contenders.contender import Contender, Kept
from losse.scaling import standard
from losse.typing import Array

NEIGHBOURS = 5
GROWTH = 1.1  # until there are so many times as many rows, the same are searched


class Neighbours:
    """Keeps all rows; those searched are renewed when they have grown by a tenth."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._searched = 0

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows."""
        self._kept.add(X, Y)
        if len(self._kept) >= GROWTH * self._searched:
            self.refresh()

    def refresh(self) -> None:
        """Search all rows from now on."""
        self._scaling = standard(self._kept.X)
        # In 14 and more dimensions trees do not pay.
        self._model = KNeighborsRegressor(
            min(NEIGHBOURS, len(self._kept)), weights="distance", algorithm="brute"
        )
        self._model.fit(self._scaling.apply(self._kept.X), self._kept.Y.copy())
        self._searched = len(self._kept)

    def predict(self, X: Array) -> Array:
        """The mean of the nearest rows, weighted by closeness."""
        return self._model.predict(self._scaling.apply(X))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self._kept.nbytes


class RiverForest:
    """`AMFRegressor` with River's default parameters; a forest predicts a single output.

    Inputs are standardised, since the forests cut at random within the range of the data.
    """

    def __init__(self, reference: Array, n_outputs: int, seed: int) -> None:
        from river import forest

        self._scaling = standard(reference)
        self._forests = [forest.AMFRegressor(seed=seed + i) for i in range(n_outputs)]

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows one after the other."""
        for row, targets in zip(self._scaling.apply(X).tolist(), Y.tolist(), strict=True):
            x = dict(enumerate(row))
            for trees, y in zip(self._forests, targets, strict=True):
                trees.learn_one(x, y)

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        rows = [dict(enumerate(row)) for row in self._scaling.apply(X).tolist()]
        return np.array([[trees.predict_one(x) for trees in self._forests] for x in rows])

    @property
    def nbytes(self) -> int:
        """Size of the pickled forests."""
        return len(pickle.dumps(self._forests, protocol=pickle.HIGHEST_PROTOCOL))


MAKERS: dict[str, Callable[[Array, Array, int], Contender]] = {
    "knn": lambda X, Y, seed: Neighbours(),
    "river-amf": lambda X, Y, seed: RiverForest(X, Y.shape[1], seed),
}
