"""Learners of scikit-learn that keep all rows and are fitted to them again and again.

They are fitted at checkpoints, and whenever the rows have grown by half, so that their predictions
ahead are worth comparing.  All have scikit-learn's default parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.accuracy.contenders.contender import Contender, Kept
from losse.typing import Array

GROWTH = 1.5


class Refitted:
    """A regressor that is made and fitted anew on all rows so far."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._kept = Kept()
        self._fitted = 0

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows; fit all if they have grown by half."""
        self._kept.add(X, Y)
        if len(self._kept) >= GROWTH * self._fitted:
            self.refresh()

    def refresh(self) -> None:
        """Fit all rows."""
        if self._fitted == len(self._kept):
            return
        self._model = self._make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its default is 200 epochs
            warnings.simplefilter("ignore", DataConversionWarning)  # a column is a target, too
            self._model.fit(*self._kept.rows())
        self._fitted = len(self._kept)

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        return np.reshape(self._model.predict(X), (len(X), -1))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self._kept.nbytes


def _ridge() -> Any:
    """Ridge regression on standardised inputs, its strength by leave-one-out errors."""
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 13)))


def _boosting(seed: int) -> Any:
    """Gradient boosting for each output."""
    return MultiOutputRegressor(HistGradientBoostingRegressor(random_state=seed))


def _mlp(seed: int) -> Any:
    """A network of 100 hidden units, with the scaling and early stopping that anyone would add."""
    network = MLPRegressor(early_stopping=True, random_state=seed)
    return TransformedTargetRegressor(
        make_pipeline(StandardScaler(), network), transformer=StandardScaler()
    )


MAKERS: dict[str, Callable[[Array, Array, int], Contender]] = {
    "ridge": lambda X, Y, seed: Refitted(_ridge),
    "mlp": lambda X, Y, seed: Refitted(lambda: _mlp(seed)),
    "boosting": lambda X, Y, seed: Refitted(lambda: _boosting(seed)),
}
