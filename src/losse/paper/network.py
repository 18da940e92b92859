"""A multilayer perceptron and its training by Adam in JAX, for experiments and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from losse.world.neural.network import ADAM, Weights, descend

Parameters = list[tuple[Any, Any]]
"""Weights and biases of each layer."""
Loss = Callable[[Any, Any, Any], Any]
"""A number from parameters, inputs and targets."""


def initialise(key: Any, layers: tuple[int, ...]) -> Parameters:
    """Weights of He's initialisation, and zero biases, of layers with these numbers of units."""
    keys = jax.random.split(key, len(layers) - 1)
    return [
        (jax.random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), jnp.zeros(n))
        for k, (m, n) in zip(keys, pairwise(layers), strict=True)
    ]


def forward(parameters: Parameters, X: Any, activation: Callable[[Any], Any] = jax.nn.relu) -> Any:
    """The outputs of the network, one row per row of X."""
    for W, b in parameters[:-1]:
        X = activation(X @ W + b)
    W, b = parameters[-1]
    return X @ W + b


def squared_error(parameters: Parameters, X: Any, Y: Any) -> Any:
    """Mean squared error over rows and outputs."""
    return jnp.mean((forward(parameters, X) - Y) ** 2)


def start(parameters: Any) -> Weights:
    """Parameters with an optimiser that has not moved yet."""
    return Weights(parameters, ADAM.init(parameters))


def adam_step(loss: Loss, weights: Weights, X: Any, Y: Any, learning_rate: Any) -> Any:
    """One step of Adam on some rows; returns the new weights, and the loss before.

    >>> weights = start(initialise(jax.random.key(0), (2, 8, 1)))
    >>> X, Y = jnp.ones((4, 2)), jnp.ones((4, 1))
    >>> weights, before = adam_step(squared_error, weights, X, Y, 0.01)
    >>> bool(squared_error(weights.parameters, X, Y) < before)
    True
    """
    error, gradient = jax.value_and_grad(loss)(weights.parameters, X, Y)
    return descend(weights, gradient, learning_rate), error
