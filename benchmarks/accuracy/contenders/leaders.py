"""Follow-the-leader models as contenders, and variants of the recommended one."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np

from benchmarks.accuracy.contenders.contender import Contender, Kept
from losse import AdaptiveEncoder, FourierEncoder, FTLRegressor, LosseEncoder, ReLUEncoder
from losse.typing import Array

DENSE_FEATURES = 2000  # for which an update costs about as much as the recommended model's
SCALED_BY = 1000
"""Rows that settle the scaling of encoders that have no warm-up of their own."""


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

    def predict_interval(self, X: Array, coverage: float) -> tuple[Array, Array]:
        """Bounds between which a share of the targets should be."""
        return self.model.predict_interval(X, coverage)

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


class Rebuilt:
    """Keeps all rows; a new recommended model learns them in one go at each checkpoint."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._model: FTLRegressor | None = None

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows."""
        self._kept.add(X, Y)

    def refresh(self) -> None:
        """Build an encoder from all rows, and fit them."""
        self._model = FTLRegressor().fit(*self._kept.rows())

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows; before the first checkpoint, their mean."""
        if self._model is None:
            return np.broadcast_to(self._kept.Y.mean(axis=0), (len(X), self._kept.Y.shape[1]))
        return self._model.predict(X)

    @property
    def nbytes(self) -> int:
        """Size of the pickled model, and all rows."""
        return len(pickle.dumps(self._model, protocol=pickle.HIGHEST_PROTOCOL)) + self._kept.nbytes


MAKERS: dict[str, Callable[[Array, Array, int], Contender]] = {
    "recommended": lambda X, Y, seed: Leader(FTLRegressor()),
    "rebuilt": lambda X, Y, seed: Rebuilt(),
    "adaptive": lambda X, Y, seed: Remembering(seed),
    "paper": lambda X, Y, seed: Leader(
        FTLRegressor(LosseEncoder(seed=seed).fit(X), solver="sparse", ridge=1e-5)
    ),
    "fourier": lambda X, Y, seed: Leader(
        FTLRegressor(FourierEncoder(DENSE_FEATURES, seed=seed).fit(X), ridge="auto")
    ),
    "relu": lambda X, Y, seed: Leader(
        FTLRegressor(ReLUEncoder(DENSE_FEATURES, seed=seed).fit(X), ridge="auto")
    ),
}


def _adaptive(seed: int, **parameters: int | bool) -> FTLRegressor:
    return FTLRegressor(AdaptiveEncoder(seed=seed, **parameters))  # type: ignore[arg-type]


VARIANTS: dict[str, Callable[[int], FTLRegressor]] = {
    "stages-0": lambda seed: _adaptive(seed, n_stages=0),
    "stages-1": lambda seed: _adaptive(seed, n_stages=1),
    "stages-6": lambda seed: _adaptive(seed, n_stages=6),
    "bins-4": lambda seed: _adaptive(seed, n_bins=4),
    "grids-200": lambda seed: _adaptive(seed, n_grids=200),
    "warm-up-2000": lambda seed: _adaptive(seed, warm_up=2000),
    "not-linear": lambda seed: _adaptive(seed, linear=False),
    "pairs": lambda seed: FTLRegressor(
        LosseEncoder(100, 4, inputs_per_axis=2, linear=True, seed=seed), past=SCALED_BY
    ),
    "pairs-not-linear": lambda seed: FTLRegressor(
        LosseEncoder(100, 4, inputs_per_axis=2, seed=seed), past=SCALED_BY
    ),
    "paper-ridge-auto": lambda seed: FTLRegressor(LosseEncoder(seed=seed), past=SCALED_BY),
    "ridge-1e-5": lambda seed: FTLRegressor(AdaptiveEncoder(seed=seed), ridge=1e-5),
    "ridge-1e-3": lambda seed: FTLRegressor(AdaptiveEncoder(seed=seed), ridge=1e-3),
}
"""The recommended model with one thing changed: what each part of it is worth."""
STALE = ("warm-up-2000",)
"""Variants that say something about a policy that changes."""
