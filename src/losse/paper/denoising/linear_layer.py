"""Training of the denoising experiment: Adam on minibatches, until the error has converged.

A row of features has few active entries, so a step is a handful of sums of weight rows. Written
out for the processor's vectors it takes 20 to 300 microseconds, which is what makes some hundred
thousand of them for each of some hundred learners affordable; XLA's gather and scatter take many
times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from losse._kernels.adam import adam_step
from losse._kernels.jit import kernel
from losse._kernels.simd import aligned, load, multiply_add, padded, splat, store
from losse.encoders import Encoder

Floats = NDArray[np.float32]

WINDOW = 20
"""Epochs over which the training error must still fall ..."""
LEAST_GAIN = 0.002
"""... by this share of itself; otherwise the learner has converged."""

_LANES = 16  # floats in a line of 64 bytes


class Rows(NamedTuple):
    """The active features of each row: which they are and their values, both (n, active)."""

    indices: NDArray[np.int32]
    values: Floats
    dimension: int


class Training(NamedTuple):
    """Course of a training: (epoch, mean squared error during it), and whether it converged."""

    curve: list[tuple[float, float]]
    converged: bool


def active_features(encoder: Encoder, X: NDArray[np.float64]) -> Rows:
    """Encode inputs with a fitted encoder; of a dense one all features are active.

    >>> from losse import TileEncoder
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> active_features(TileEncoder(n_grids=5).fit(X), X).indices.shape
    (100, 5)
    """
    features = encoder.transform(X)
    shape = (len(X), encoder.n_active)
    if issparse(features):
        indices, values = features.indices.reshape(shape), features.data.reshape(shape)
    else:
        indices, values = np.broadcast_to(np.arange(shape[1]), shape), features
    return Rows(
        np.ascontiguousarray(indices, np.int32),
        np.ascontiguousarray(values, np.float32),
        encoder.dimension,
    )


def learn_linear(
    rows: Rows,
    Y: NDArray[np.float64],
    *,
    batch: int,
    learning_rate: float,
    max_epochs: int,
    seed: int,
) -> tuple[Floats, Training]:
    """Weights (D, outputs) that Adam finds for the mean squared error, from zero, and how.

    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> rows = Rows(np.tile(np.arange(2, dtype=np.int32), (500, 1)), X.astype(np.float32), 2)
    >>> W, training = learn_linear(
    ...     rows, X @ [[1.0], [2.0]], batch=10, learning_rate=0.01, max_epochs=100, seed=0
    ... )
    >>> W.round(2).ravel().tolist()
    [1.0, 2.0]
    """
    n, outputs = Y.shape
    width = padded(outputs, np.float32)
    targets = aligned((n, width), np.float32)
    targets[:, :outputs] = Y
    W, mean, square, gradient = (aligned((rows.dimension, width), np.float32) for _ in range(4))
    rng = np.random.default_rng(seed)
    steps = 0

    def epoch() -> float:
        nonlocal steps
        order = rng.permutation(n)
        total = _adam_epoch(
            rows.indices, rows.values, targets, order, batch, learning_rate, steps,
            W, mean, square, gradient,
        )  # fmt: skip
        steps += math.ceil(n / batch)
        return float(total) / (n * outputs)

    training = until_converged(epoch, max_epochs)
    return W[:, :outputs].copy(), training


def until_converged(epoch: Callable[[], float], max_epochs: int) -> Training:
    """Repeat an epoch, which returns its error, while the error falls enough.

    It must fall by at least 0.2 % within 20 epochs.

    >>> errors = iter([1 + 1 / (k + 1) for k in range(1000)])
    >>> training = until_converged(lambda: next(errors), 1000)
    >>> len(training.curve), training.converged
    (110, True)
    """
    curve: list[tuple[float, float]] = []
    for k in range(1, max_epochs + 1):
        error = epoch()
        curve.append((k, round(error, 7)))
        if not math.isfinite(error):
            return Training(curve, False)
        if k > WINDOW and error > (1 - LEAST_GAIN) * curve[-1 - WINDOW][1]:
            return Training(curve, True)
    return Training(curve, False)


def linear_error(rows: Rows, W: Floats, Y: NDArray[np.float64]) -> float:
    """Mean squared error of a linear layer.

    >>> rows = Rows(np.array([[0]], np.int32), np.array([[2.0]], np.float32), 1)
    >>> linear_error(rows, np.array([[1.5]], np.float32), np.array([[1.0]]))
    4.0
    """
    predictions = np.zeros(Y.shape)
    for column in range(rows.indices.shape[1]):
        predictions += rows.values[:, column, None] * W[rows.indices[:, column]]
    return float(np.mean((predictions - Y) ** 2))


@kernel
def _adam_epoch(
    indices: Any, values: Any, Y: Any, order: Any, batch: Any, rate: Any, step: Any,
    W: Any, mean: Any, square: Any, gradient: Any,
) -> Any:  # fmt: skip
    """One pass over the rows in the given order; returns the sum of squared errors on the way."""
    total = 0.0
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        total += _add_gradient(indices, values, Y, some, W, gradient)
        step += 1
        adam_step(W.ravel(), mean.ravel(), square.ravel(), gradient.ravel(), rate, step)
    return total


@kernel
def _add_gradient(indices: Any, values: Any, Y: Any, some: Any, W: Any, gradient: Any) -> Any:
    """Add the gradient of the minibatch's mean squared error (times the number of outputs)."""
    width = Y.shape[1]
    error = np.empty(width, np.float32)
    factor = np.float32(2.0 / len(some))
    total = np.float32(0.0)
    for i in some:
        for first in range(0, width, _LANES):
            line = multiply_add(
                splat(np.float32(-1.0)), load(Y, i * width + first), splat(np.float32(0.0))
            )
            for a in range(indices.shape[1]):
                offset = np.int64(indices[i, a]) * width + first
                line = multiply_add(splat(values[i, a]), load(W, offset), line)
            store(error, first, line)
        for s in range(width):
            total += error[s] * error[s]
            error[s] *= factor
        for first in range(0, width, _LANES):
            line = load(error, first)
            for a in range(indices.shape[1]):
                offset = np.int64(indices[i, a]) * width + first
                store(
                    gradient,
                    offset,
                    multiply_add(splat(values[i, a]), line, load(gradient, offset)),
                )
    return total
