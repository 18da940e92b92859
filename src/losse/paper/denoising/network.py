"""The network of the denoising experiment, trained with a whole epoch in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from losse.paper import network
from losse.paper.denoising.linear_layer import Training, until_converged
from losse.typing import Array


class Network:
    """A multilayer perceptron with ReLU units, trained by Adam on the mean squared error.

    >>> X = np.random.default_rng(0).normal(size=(512, 2))
    >>> network = Network((2, 16, 1), seed=0)
    >>> training = network.learn(
    ...     X, np.abs(X[:, :1]), batch=32, learning_rate=1e-2, max_epochs=60
    ... )
    >>> bool(np.mean((network.predict(X) - np.abs(X[:, :1])) ** 2) < 0.02)
    True
    """

    def __init__(self, layers: Sequence[int], seed: int) -> None:
        layered = network.initialise(jax.random.key(seed), tuple(layers))
        # One long vector: for a network this small, Adam's time goes by the number of arrays.
        self._parameters, self._layered = ravel_pytree(layered)
        self._seed = seed

    def learn(
        self, X: Array, Y: Array, *, batch: int, learning_rate: float, max_epochs: int
    ) -> Training:
        """Train until the error on the training data has converged."""
        inputs, targets = jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32)
        steps = len(X) // batch
        rng = np.random.default_rng(self._seed)

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            return network.squared_error(self._layered(parameters), x, y)

        def step(weights: Any, data: Any) -> Any:
            x, y = data
            return network.adam_step(loss, weights, x, y, learning_rate)

        @jax.jit
        def whole_epoch(weights: Any, order: Any) -> Any:
            minibatches = (part[order].reshape(steps, batch, -1) for part in (inputs, targets))
            weights, errors = jax.lax.scan(step, weights, tuple(minibatches))
            return weights, errors.mean()

        weights = network.start(self._parameters)

        def epoch() -> float:
            nonlocal weights
            # The few rows beyond whole minibatches wait for another epoch's order.
            weights, error = whole_epoch(weights, rng.permutation(len(X))[: steps * batch])
            return float(error)

        training = until_converged(epoch, max_epochs)
        self._parameters = weights.parameters
        return training

    def predict(self, X: Array) -> Array:
        """The network's outputs, one row per row of X."""
        outputs = network.forward(self._layered(self._parameters), jnp.asarray(X, jnp.float32))
        return np.asarray(outputs, np.float64)
