"""How good is River's best?  Aggregated Mondrian forests, one for each output."""

from __future__ import annotations

import pickle

import numpy as np
from river import forest

from benchmarks.contenders.contender import Array
from benchmarks.contenders.scaling import Scaling


class RiverForest:
    """`AMFRegressor` with River's default parameters; a forest predicts a single output.

    Inputs are standardised, since the forests cut at random within the range of the data.
    """

    def __init__(self, reference: Array, n_outputs: int, seed: int) -> None:
        self._scaling = Scaling(reference)
        self._forests = [forest.AMFRegressor(seed=seed + i) for i in range(n_outputs)]

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows one after the other."""
        for row, targets in zip(self._scaling.scale(X).tolist(), Y.tolist(), strict=True):
            x = dict(enumerate(row))
            for trees, y in zip(self._forests, targets, strict=True):
                trees.learn_one(x, y)

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        rows = [dict(enumerate(row)) for row in self._scaling.scale(X).tolist()]
        return np.array([[trees.predict_one(x) for trees in self._forests] for x in rows])

    @property
    def nbytes(self) -> int:
        """Size of the pickled forests."""
        return len(pickle.dumps(self._forests, protocol=pickle.HIGHEST_PROTOCOL))
