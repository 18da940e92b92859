"""What is the network that we are compared with?  4 x 400 swish units and steps of Adam, in JAX."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

HIDDEN = (400, 400, 400, 400)
ADAM = optax.scale_by_adam()

Parameters = list[tuple[Any, Any]]


def initialise(rng: np.random.Generator, n_inputs: int, n_outputs: int) -> Parameters:
    """Weights of variance 1 / inputs, and zero biases."""
    layers = (n_inputs, *HIDDEN, n_outputs)
    return [
        (jnp.asarray(rng.normal(size=(m, n)) / np.sqrt(m), jnp.float32), jnp.zeros(n, jnp.float32))
        for m, n in pairwise(layers)
    ]


def forward(parameters: Parameters, X: Any) -> Any:
    """The outputs, one row per row of X."""
    for W, b in parameters[:-1]:
        X = jax.nn.swish(X @ W + b)
    W, b = parameters[-1]
    return X @ W + b


def loss(parameters: Parameters, X: Any, Y: Any) -> Any:
    """Mean squared error over rows and outputs."""
    return jnp.mean((forward(parameters, X) - Y) ** 2)


predict = jax.jit(forward)
error = jax.jit(loss)


@jax.jit
def descend(parameters: Parameters, state: Any, X: Any, Y: Any, batches: Any, rate: Any) -> Any:
    """A step of Adam for each row of `batches`, which names rows of X and Y.

    Returns the new weights and the optimiser's new state.
    """

    def step(carry: Any, rows: Any) -> Any:
        parameters, state = carry
        gradient = jax.grad(loss)(parameters, X[rows], Y[rows])
        change, state = ADAM.update(gradient, state)
        return (jax.tree.map(lambda p, c: p - rate * c, parameters, change), state), None

    return jax.lax.scan(step, (parameters, state), batches)[0]


def size(*trees: Any) -> int:
    """Bytes of all arrays in some weights or states."""
    return int(sum(leaf.nbytes for leaf in jax.tree.leaves(trees)))
