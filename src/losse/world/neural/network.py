"""The network of a neural world model, its loss, and one step of Adam.

Rows are [inputs | targets] in single precision, as the environment has them. Networks see them
scaled, each column by a shift and a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from losse.scaling import Scaling

ADAM = optax.scale_by_adam()
DIVERGED = 100.0
"""So many times the loss before an update (or 1, that of predicting the mean) is an explosion."""


class Network(nn.Module):
    """Layers of swish units with a linear one on top, as in MBPO."""

    hidden: tuple[int, ...]
    n_outputs: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for i, width in enumerate(self.hidden):
            x = nn.swish(nn.Dense(width, name=f"hidden{i}")(x))
        return nn.Dense(self.n_outputs, name="last")(x)


class Weights(NamedTuple):
    """All that gradient descent carries along."""

    parameters: Any
    optimiser: Any


def new_weights(network: Network, n_inputs: int, seed: int) -> Weights:
    """Initial weights, and an optimiser that has not moved yet.

    Examples
    --------
    >>> weights = new_weights(Network((32, 32), n_outputs=2), n_inputs=5, seed=0)
    >>> weights.parameters["hidden0"]["kernel"].shape
    (5, 32)
    """
    return _new_weights(network, jax.random.key(seed), jnp.zeros((1, n_inputs)))


@partial(jax.jit, static_argnames="network")
def _new_weights(network: Network, key: Any, X: Any) -> Weights:
    parameters = network.init(key, X)["params"]
    return Weights(parameters, ADAM.init(parameters))


def parameter_shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes of a network's parameters in the order of its tree, from inputs to outputs.

    Examples
    --------
    >>> parameter_shapes([5, 32, 2])
    [(32,), (5, 32), (2,), (32, 2)]
    """
    layers = {f"hidden{i}": pair for i, pair in enumerate(pairwise(widths[:-1]))}
    layers["last"] = widths[-2], widths[-1]
    return [shape for _, (a, b) in sorted(layers.items()) for shape in ((b,), (a, b))]


def loss(network: Network, parameters: Any, rows: Any, scaling: Scaling, mask: Any = 1.0) -> Any:
    """Mean squared error over outputs and over the rows that ``mask`` counts."""
    n_inputs = rows.shape[1] - network.n_outputs
    scaled = (rows - scaling.shift) * scaling.factor
    predicted = network.apply({"params": parameters}, scaled[:, :n_inputs])
    weight = jnp.broadcast_to(mask, rows.shape[:1])
    error = jnp.mean((predicted - scaled[:, n_inputs:]) ** 2, axis=1)
    return jnp.sum(error * weight) / jnp.sum(weight)


def descend(weights: Weights, gradient: Any, learning_rate: Any) -> Weights:
    """One step of Adam."""
    change, optimiser = ADAM.update(gradient, weights.optimiser)
    parameters = jax.tree.map(lambda p, c: p - learning_rate * c, weights.parameters, change)
    return Weights(parameters, optimiser)


def is_healthy(state: Any, before: Any, after: Any) -> Any:
    """Whether training left finite numbers, and a loss that has not exploded."""
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]
    bounded = after <= DIVERGED * jnp.maximum(before, 1.0)  # not so for NaN
    return jnp.all(jnp.stack(finite)) & bounded & jnp.isfinite(after)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One of two states of the same structure."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


@partial(jax.jit, static_argnames="network")
def predict(network: Network, parameters: Any, X: Any, scaling: Scaling) -> Any:
    """Targets of inputs, both as the environment has them."""
    n_inputs = X.shape[1]
    scaled = (X - scaling.shift[:n_inputs]) * scaling.factor[:n_inputs]
    outputs: Any = network.apply({"params": parameters}, scaled)
    return outputs / scaling.factor[n_inputs:] + scaling.shift[n_inputs:]
