"""Deep networks as contenders: one that sees all data until it has converged, one of one pass.

Both have 4 x 400 swish units. The first is trained as the networks of model-based reinforcement
learning are: Adam on standardised inputs and targets, a hold-out, and an end when the hold-out's
error stops falling.  Then the learning rate is cut and training goes on from the best weights.
Such recipes leave that out, and their batches are larger; both changes make the network better at
these numbers of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.accuracy.contenders.contender import Contender, Kept
from losse.paper.network import Parameters, adam_step, forward, start
from losse.scaling import Scaling, standard
from losse.typing import Array

HIDDEN = (400, 400, 400, 400)

SMALLEST_BATCH, LARGEST_BATCH = 16, 64
STEPS_PER_EPOCH = 300  # about: few rows in large batches would mean too few steps
RATES = (1e-3, 3e-4, 1e-4)  # each until the hold-out's error stops falling
PATIENCE = 5  # epochs without a gain of GAIN
GAIN = 0.01
MOST_EPOCHS = 1000
HOLD_OUT = (0.2, 5000)  # this share of the rows, but no more than so many

WINDOW = 256  # the latest rows, which the network of one pass may draw from
STEPS = 20  # of Adam for each batch that arrives: about the recommended model's time
BATCH = 32
RATE = 3e-4


def initialise(rng: np.random.Generator, n_inputs: int, n_outputs: int) -> Parameters:
    """Weights of variance 1 / inputs, and zero biases."""
    return [
        (jnp.asarray(rng.normal(size=(m, n)) / np.sqrt(m), jnp.float32), jnp.zeros(n, jnp.float32))
        for m, n in pairwise((n_inputs, *HIDDEN, n_outputs))
    ]


@jax.jit
def outputs(parameters: Parameters, X: Any) -> Any:
    """The network's outputs, one row per row of X."""
    return forward(parameters, X, jax.nn.swish)


@jax.jit
def loss(parameters: Parameters, X: Any, Y: Any) -> Any:
    """Mean squared error over rows and outputs."""
    return jnp.mean((outputs(parameters, X) - Y) ** 2)


@jax.jit
def descend(weights: Any, X: Any, Y: Any, batches: Any, rate: Any) -> Any:
    """Weights after a step of Adam for each row of `batches`, which names rows of X and Y."""

    def step(weights: Any, rows: Any) -> Any:
        return adam_step(loss, weights, X[rows], Y[rows], rate)[0], None

    return jax.lax.scan(step, weights, batches)[0]


class Network:
    """Keeps all rows; a new network is trained on them at each checkpoint."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept = Kept()
        self._parameters: Parameters = []

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows."""
        self._kept.add(X, Y)

    def refresh(self) -> None:
        """Train a new network on all rows until it has converged."""
        rng = np.random.default_rng(self._seed)
        self._scalings = standard(self._kept.X), standard(self._kept.Y)
        order = rng.permutation(len(self._kept))
        x, y = (
            scaling.apply(part)[order].astype(np.float32)
            for scaling, part in zip(self._scalings, self._kept.rows(), strict=True)
        )
        n_held = min(int(HOLD_OUT[0] * len(x)), HOLD_OUT[1])
        held = x[:n_held], y[:n_held]
        train = jnp.asarray(x[n_held:]), jnp.asarray(y[n_held:])
        batch = batch_size(len(train[0]))
        n_batches = max(1, len(train[0]) // batch)

        best, least, epochs = initialise(rng, x.shape[1], y.shape[1]), np.inf, 0
        for rate in RATES:
            weights = start(best)
            reference, waited = least, 0
            while waited < PATIENCE and epochs < MOST_EPOCHS:
                batches = np.resize(rng.permutation(len(train[0])), (n_batches, batch))
                weights = descend(weights, *train, batches, np.float32(rate))
                now, epochs = float(loss(weights.parameters, *held)), epochs + 1
                if now < least:
                    best, least = weights.parameters, now
                waited += 1
                if now < (1 - GAIN) * reference:
                    reference, waited = now, 0
        self._parameters = best

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows; before it was ever trained, their mean."""
        if not self._parameters:
            return np.broadcast_to(self._kept.Y.mean(axis=0), (len(X), self._kept.Y.shape[1]))
        return _predict(self._parameters, X, *self._scalings)

    @property
    def nbytes(self) -> int:
        """Weights, and all rows."""
        return _size(self._parameters) + self._kept.nbytes


class OnlineNetwork:
    """Adam on minibatches of the latest rows, without a memory of those before."""

    def __init__(self, reference_X: Array, reference_Y: Array, seed: int) -> None:
        self._scalings = standard(reference_X), standard(reference_Y)
        self._rng = np.random.default_rng(seed)
        widths = reference_X.shape[1], reference_Y.shape[1]
        self._weights = start(initialise(self._rng, *widths))
        # Of full size from the start, so that one compiled function serves all calls.
        self._window = [np.zeros((WINDOW, width), np.float32) for width in widths]
        self._n = 0

    def learn(self, X: Array, Y: Array) -> None:
        """Put rows into the window and train on it."""
        for new, scaling, rows in zip((X, Y), self._scalings, self._window, strict=True):
            latest = scaling.apply(new)[-WINDOW:]
            rows[: WINDOW - len(latest)] = rows[len(latest) :]
            rows[WINDOW - len(latest) :] = latest
        self._n = min(self._n + len(X), WINDOW)
        drawn = self._rng.integers(WINDOW - self._n, WINDOW, size=(STEPS, BATCH))
        learned = descend(self._weights, *self._window, drawn, np.float32(RATE))
        # A call returns before its work is done; it would be timed too short, and read our window
        # while that changes.
        self._weights = jax.block_until_ready(learned)

    def refresh(self) -> None:
        """Nothing to do: it learns all along."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""
        return _predict(self._weights.parameters, X, *self._scalings)

    @property
    def nbytes(self) -> int:
        """Weights, Adam's averages and the window."""
        return _size(self._weights, self._window)


MAKERS: dict[str, Callable[[Array, Array, int], Contender]] = {
    "nn-online": OnlineNetwork,
    "full-replay": lambda X, Y, seed: Network(seed),
}


def batch_size(n: int) -> int:
    """The power of two that makes about the wanted number of steps of n rows.

    >>> [batch_size(n) for n in (800, 2400, 8000, 16_000, 45_000)]
    [16, 16, 32, 64, 64]
    """
    power = 2 ** round(math.log2(max(1, n / STEPS_PER_EPOCH)))
    return min(max(power, SMALLEST_BATCH), LARGEST_BATCH)


def _predict(parameters: Parameters, X: Array, inputs: Scaling, targets: Scaling) -> Array:
    scaled = np.asarray(outputs(parameters, inputs.apply(X).astype(np.float32)), np.float64)
    return scaled / targets.factor + targets.shift


def _size(*trees: Any) -> int:
    """Bytes of all arrays in some weights or states."""
    return int(sum(leaf.nbytes for leaf in jax.tree.leaves(trees)))
