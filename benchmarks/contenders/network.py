"""How good is a deep network that may see all data again and again, until it has converged?

Trained as the networks of model-based reinforcement learning are: Adam on standardised inputs and
targets, a hold-out, and an end when the hold-out's error stops falling.  Then the learning rate is
cut and training goes on from the best weights.  Such recipes leave that out, and their batches are
larger; both changes make the network better at these numbers of rows.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from benchmarks.contenders import perceptron
from benchmarks.contenders.contender import Array
from benchmarks.contenders.kept import Kept
from benchmarks.contenders.scaling import Scaling

SMALLEST_BATCH, LARGEST_BATCH = 16, 64
STEPS_PER_EPOCH = 300  # about: few rows in large batches would mean too few steps
RATES = (1e-3, 3e-4, 1e-4)  # each until the hold-out's error stops falling
PATIENCE = 5  # epochs without a gain of GAIN
GAIN = 0.01
MOST_EPOCHS = 1000
HOLD_OUT = (0.2, 5000)  # this share of the rows, but no more than so many


class Network:
    """Keeps all rows; a new network is trained on them at each checkpoint."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept = Kept()
        self._parameters: perceptron.Parameters = []

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows."""
        self._kept.add(X, Y)

    def refresh(self) -> None:
        """Train a new network on all rows until it has converged."""
        rng = np.random.default_rng(self._seed)
        self._inputs, self._targets = Scaling(self._kept.X), Scaling(self._kept.Y)
        order = rng.permutation(len(self._kept))
        x = self._inputs.scale(self._kept.X)[order].astype(np.float32)
        y = self._targets.scale(self._kept.Y)[order].astype(np.float32)
        n_held = min(int(HOLD_OUT[0] * len(x)), HOLD_OUT[1])
        held = x[:n_held], y[:n_held]
        train = jnp.asarray(x[n_held:]), jnp.asarray(y[n_held:])
        batch = batch_size(len(train[0]))
        n_batches = max(1, len(train[0]) // batch)

        best, least, epochs = perceptron.initialise(rng, x.shape[1], y.shape[1]), np.inf, 0
        for rate in RATES:
            parameters, state = best, perceptron.ADAM.init(best)
            reference, waited = least, 0
            while waited < PATIENCE and epochs < MOST_EPOCHS:
                batches = np.resize(rng.permutation(len(train[0])), (n_batches, batch))
                parameters, state = perceptron.descend(
                    parameters, state, *train, batches, np.float32(rate)
                )
                now, epochs = float(perceptron.error(parameters, *held)), epochs + 1
                if now < least:
                    best, least = parameters, now
                waited += 1
                if now < (1 - GAIN) * reference:
                    reference, waited = now, 0
        self._parameters = best

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows; before it was ever trained, their mean."""
        if not self._parameters:
            return np.broadcast_to(self._kept.Y.mean(axis=0), (len(X), self._kept.Y.shape[1]))
        x = self._inputs.scale(X).astype(np.float32)
        scaled = np.asarray(perceptron.predict(self._parameters, x), np.float64)
        return self._targets.unscale(scaled)

    @property
    def nbytes(self) -> int:
        """Weights, and all rows."""
        return perceptron.size(self._parameters) + self._kept.nbytes


def batch_size(n: int) -> int:
    """The power of two that makes about the wanted number of steps of n rows.

    >>> [batch_size(n) for n in (800, 2400, 8000, 16_000, 45_000)]
    [16, 16, 32, 64, 64]
    """
    power = 2 ** round(math.log2(max(1, n / STEPS_PER_EPOCH)))
    return min(max(power, SMALLEST_BATCH), LARGEST_BATCH)
