"""Nearest neighbours, and regressors of other streaming libraries, as contenders."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

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


class RiverModel:
    """A regressor with River's default parameters, one of them for each output.

    Inputs are standardised, since forests cut at random within the range of the data.
    """

    def __init__(self, make: Callable[[int], Any], reference: Array, n_outputs: int, seed: int):
        self._scaling = standard(reference)
        self._models = [make(seed + i) for i in range(n_outputs)]

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows one after the other."""
        for row, targets in zip(self._scaling.apply(X).tolist(), Y.tolist(), strict=True):
            x = dict(enumerate(row))
            for model, y in zip(self._models, targets, strict=True):
                model.learn_one(x, y)

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        rows = [dict(enumerate(row)) for row in self._scaling.apply(X).tolist()]
        return np.array([[model.predict_one(x) for model in self._models] for x in rows])

    @property
    def nbytes(self) -> int:
        """Size of the pickled models."""
        return len(pickle.dumps(self._models, protocol=pickle.HIGHEST_PROTOCOL))


class VowpalWabbit:
    """Vowpal Wabbit in one pass, with products of inputs and ten hidden units, for each output.

    Targets are standardised, since its first predictions are near zero.
    """

    OPTIONS = "--quiet -q :: --nn 10"

    def __init__(self, reference: Array, seed: int) -> None:
        from vowpalwabbit import Workspace

        self._scaling = standard(reference)
        n_outputs = reference.shape[1]
        self._models = [
            Workspace(f"{self.OPTIONS} --random_seed {seed + i}") for i in range(n_outputs)
        ]

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows one after the other."""
        for x, targets in zip(_examples(X), self._scaling.apply(Y), strict=True):
            for model, y in zip(self._models, targets, strict=True):
                model.learn(f"{y} {x}")

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        scaled = np.array([[model.predict(x) for model in self._models] for x in _examples(X)])
        return scaled / self._scaling.factor + self._scaling.shift

    @property
    def nbytes(self) -> int:
        """Size of the tables of hashed weights: four single-precision numbers each."""
        return sum(16 * model.num_weights() for model in self._models)


def _examples(X: Array) -> list[str]:
    """Rows in Vowpal Wabbit's text format, without the target."""
    return ["| " + " ".join(f"{i}:{value:.9g}" for i, value in enumerate(row)) for row in X]


def _river(kind: str) -> Callable[[Array, Array, int], Contender]:
    def make(X: Array, Y: Array, seed: int) -> Contender:
        from river import ensemble, forest

        kinds = {"amf": forest.AMFRegressor, "srp": ensemble.SRPRegressor}
        return RiverModel(lambda number: kinds[kind](seed=number), X, Y.shape[1], seed)

    return make


MAKERS: dict[str, Callable[[Array, Array, int], Contender]] = {
    "knn": lambda X, Y, seed: Neighbours(),
    "river-amf": _river("amf"),
    "river-srp": _river("srp"),
    "vowpal-wabbit": lambda X, Y, seed: VowpalWabbit(Y, seed),
}
