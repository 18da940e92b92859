"""How good is a deep network in one pass?  The same network, trained on the latest rows only."""

from __future__ import annotations

import jax
import numpy as np

from benchmarks.contenders import perceptron
from benchmarks.contenders.contender import Array
from benchmarks.contenders.scaling import Scaling

WINDOW = 256  # the latest rows, which it may draw from
STEPS = 20  # of Adam for each batch that arrives: about the recommended model's time
BATCH = 32
RATE = 3e-4


class OnlineNetwork:
    """Adam on minibatches of the latest rows, without a memory of those before."""

    def __init__(self, reference_X: Array, reference_Y: Array, seed: int) -> None:
        self._scalings = Scaling(reference_X), Scaling(reference_Y)
        self._rng = np.random.default_rng(seed)
        widths = reference_X.shape[1], reference_Y.shape[1]
        self._parameters = perceptron.initialise(self._rng, *widths)
        self._state = perceptron.ADAM.init(self._parameters)
        # Of full size from the start, so that one compiled function serves all calls.
        self._window = [np.zeros((WINDOW, width), np.float32) for width in widths]
        self._n = 0

    def learn(self, X: Array, Y: Array) -> None:
        """Put rows into the window and train on it."""
        for new, scaling, rows in zip((X, Y), self._scalings, self._window, strict=True):
            latest = scaling.scale(new)[-WINDOW:]
            rows[: WINDOW - len(latest)] = rows[len(latest) :]
            rows[WINDOW - len(latest) :] = latest
        self._n = min(self._n + len(X), WINDOW)
        drawn = self._rng.integers(WINDOW - self._n, WINDOW, size=(STEPS, BATCH))
        learned = perceptron.descend(
            self._parameters, self._state, *self._window, drawn, np.float32(RATE)
        )
        # A call returns before its work is done; it would be timed too short, and read our window
        # while that changes.
        self._parameters, self._state = jax.block_until_ready(learned)

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        x = self._scalings[0].scale(X).astype(np.float32)
        scaled = np.asarray(perceptron.predict(self._parameters, x), np.float64)
        return self._scalings[1].unscale(scaled)

    @property
    def nbytes(self) -> int:
        """Weights, Adam's averages and the window."""
        return perceptron.size(self._parameters, self._state, self._window)
