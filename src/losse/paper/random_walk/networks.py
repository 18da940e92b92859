"""Networks that learn a whole stream in one compiled call, many seeds side by side."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from losse.paper import network


class Learned(NamedTuple):
    """Predictions of the networks, and the time that learning took."""

    predictions: NDArray[np.float32]
    """Predictions of shape (checkpoints, seeds, rows)."""
    seconds: float
    """Wall-clock of all seeds together, without compilation."""


def learn_streams(
    X: NDArray[np.float32],
    Y: NDArray[np.float32],
    X_test: NDArray[np.float32],
    *,
    hidden: tuple[int, ...],
    learning_rate: float,
    seeds: list[int],
    checkpoints: int = 1,
) -> Learned:
    """Predictions of a network that takes one step of Adam for each minibatch of a stream.

    One network per seed, with ReLU units, learns its own stream; all go through it together.

    Parameters
    ----------
    X
        Inputs, of shape (seeds, steps, minibatch, features).
    Y
        Targets, of shape (seeds, steps, minibatch).
    X_test
        Inputs to predict, of shape (seeds, rows, features).
    hidden
        Units of each hidden layer.
    learning_rate
        Adam's step size.
    seeds
        Seeds of the initial weights.
    checkpoints
        Number of evenly spaced moments at which to predict, the last at the end.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(1, 2000, 1, 1)).astype(np.float32)
    >>> learned = learn_streams(
    ...     x, 2 * x[..., 0], x[:, -5:, 0], hidden=(20,), learning_rate=1e-2, seeds=[0]
    ... )
    >>> bool(np.abs(learned.predictions[-1, 0] - 2 * x[0, -5:, 0, 0]).max() < 0.2)
    True
    """
    n_seeds, steps, batch, features = X.shape
    if steps % checkpoints:
        raise ValueError(f"{checkpoints} checkpoints do not divide {steps} steps")
    # Time leads, so that a step reads one contiguous slice.
    lead = (checkpoints, steps // checkpoints)
    X_time = np.ascontiguousarray(np.swapaxes(X, 0, 1)).reshape(*lead, n_seeds, batch, features)
    Y_time = np.ascontiguousarray(np.swapaxes(Y, 0, 1)).reshape(*lead, n_seeds, batch)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    shapes = (X_time.shape, X_test.shape)
    learn = _compiled((features, *hidden, 1), shapes)
    began = time.perf_counter()
    predictions = np.asarray(learn(keys, X_time, Y_time, X_test, np.float32(learning_rate)))
    return Learned(predictions, time.perf_counter() - began)


@lru_cache
def _compiled(layers: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> Any:
    """The compiled function for one shape of stream and test data."""
    stream, test = shapes
    keys = jax.random.split(jax.random.key(0), stream[2])
    arrays = [jnp.zeros(shape) for shape in (stream, stream[:-1], test, ())]
    return _learn(layers).lower(keys, *arrays).compile()


def _learn(layers: tuple[int, ...]) -> Any:
    """The function that learns: all seeds side by side, step by step, stretch by stretch."""

    def predict(parameters: Any, x: Any) -> Any:
        return network.forward(parameters, x)[..., 0]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return jnp.mean((predict(parameters, x) - y) ** 2)

    @jax.vmap
    def start(key: Any) -> Any:
        return network.start(network.initialise(key, layers))

    @jax.jit
    def learn(keys: Any, X: Any, Y: Any, X_test: Any, learning_rate: Any) -> Any:
        def update(weights: Any, x: Any, y: Any) -> Any:
            return network.adam_step(loss, weights, x, y, learning_rate)[0]

        def step(weights: Any, data: Any) -> Any:
            return jax.vmap(update)(weights, *data), None

        def stretch(weights: Any, data: Any) -> Any:
            weights, _ = jax.lax.scan(step, weights, data)
            return weights, jax.vmap(predict)(weights.parameters, X_test)

        _, predictions = jax.lax.scan(stretch, start(keys), (X, Y))
        return predictions

    return learn
