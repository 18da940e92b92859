"""How do follow-the-leader models compete?  One class for all of them; the encoder differs."""

from __future__ import annotations

import pickle

from benchmarks.contenders.contender import Array
from benchmarks.contenders.kept import Kept
from losse import AdaptiveEncoder, FTLRegressor


class Leader:
    """An `FTLRegressor` as a contender."""

    def __init__(self, model: FTLRegressor) -> None:
        self.model = model

    def learn(self, X: Array, Y: Array) -> None:
        """Take in the next rows."""
        self.model.partial_fit(X, Y)

    def refresh(self) -> None:
        """Nothing to do: it follows the leader all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        return self.model.predict(X)

    def predict_std(self, X: Array) -> tuple[Array, Array]:
        """Predictions and their standard deviations."""
        return self.model.predict(X, return_std=True)

    @property
    def nbytes(self) -> int:
        """Size of the pickled model, with the rows it can be told again."""
        return len(pickle.dumps(self.model, protocol=pickle.HIGHEST_PROTOCOL))


class Remembering(Leader):
    """With a source of past rows, such as an agent's replay buffer, directions are renewed."""

    def __init__(self, seed: int) -> None:
        self._kept = Kept()
        super().__init__(FTLRegressor(AdaptiveEncoder(seed=seed), past=self._kept.rows))

    def learn(self, X: Array, Y: Array) -> None:
        """Keep the next rows, and take them in."""
        self._kept.add(X, Y)
        super().learn(X, Y)
