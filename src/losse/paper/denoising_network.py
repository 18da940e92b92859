"""The neural network of the denoising experiment: a whole epoch in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from losse.paper.denoising_training import Training, until_converged

Array = NDArray[np.float64]


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
        keys = jax.random.split(jax.random.key(seed), len(layers) - 1)
        layered = [
            (jax.random.normal(key, (m, n)) * jnp.sqrt(2.0 / m), jnp.zeros(n))  # He's
            for key, m, n in zip(keys, layers[:-1], layers[1:], strict=True)
        ]
        # One long vector: for a network this small, Adam's time goes by the number of arrays.
        self._parameters, self._layered = ravel_pytree(layered)
        self._seed = seed

    def learn(
        self, X: Array, Y: Array, *, batch: int, learning_rate: float, max_epochs: int
    ) -> Training:
        """Train until the error on the training data has converged."""
        optimiser = optax.adam(learning_rate)
        inputs, targets = jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32)
        steps = len(X) // batch
        rng = np.random.default_rng(self._seed)

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            return jnp.mean((_forward(self._layered(parameters), x) - y) ** 2)

        def step(carry: Any, data: Any) -> Any:
            parameters, state = carry
            error, gradient = jax.value_and_grad(loss)(parameters, *data)
            change, state = optimiser.update(gradient, state)
            return (optax.apply_updates(parameters, change), state), error

        @jax.jit
        def whole_epoch(carry: Any, order: Any) -> Any:
            minibatches = (part[order].reshape(steps, batch, -1) for part in (inputs, targets))
            carry, errors = jax.lax.scan(step, carry, tuple(minibatches))
            return carry, errors.mean()

        carry = (self._parameters, optimiser.init(self._parameters))

        def epoch() -> float:
            nonlocal carry
            # The few rows beyond whole minibatches wait for another epoch's order.
            carry, error = whole_epoch(carry, rng.permutation(len(X))[: steps * batch])
            return float(error)

        training = until_converged(epoch, max_epochs)
        self._parameters = carry[0]
        return training

    def predict(self, X: Array) -> Array:
        """The network's outputs, one row per row of X."""
        outputs = _forward(self._layered(self._parameters), jnp.asarray(X, jnp.float32))
        return np.asarray(outputs, np.float64)


def _forward(parameters: Any, X: Any) -> Any:
    for W, b in parameters[:-1]:
        X = jax.nn.relu(X @ W + b)
    W, b = parameters[-1]
    return X @ W + b
