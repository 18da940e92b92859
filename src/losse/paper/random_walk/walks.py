"""Streams of figures 4 and 7, and the test that both figures share.

What the paper leaves open, and our choice: 10,000 samples (3,000 in the quick preset), a centre
that drifts every 50, and as many test samples as the stream has, one drawn afresh around each S_t.
Where a learner takes a minibatch at each step, it is 50 samples from the distribution of X_t, so
it sees 50 times the data of one that learns the stream itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from losse.runs.experiment import CommonSettings
from losse.streams import Stream, chirp, piecewise_random_walk

PERIOD = 50
"""Samples between two drifts, tau."""

# Keep the seeds of test inputs and minibatches apart from those of the streams.
_TEST_SEED = 2**32
_MINIBATCH_SEED = 2**33


@dataclass(frozen=True, kw_only=True)
class WalkSettings(CommonSettings):
    """Settings of the streams, which both experiments have."""

    samples: int | None = None
    """Length of the stream; by default that of the preset."""
    period: int = PERIOD
    """Samples between two drifts of the centre."""


class Walk(NamedTuple):
    """A stream to learn, and independent samples across all of its centres."""

    stream: Stream
    test: Stream


def random_walk(level: float, samples: int, period: int, seed: int) -> Walk:
    """The stream of one seed at correlation level d, with its test samples.

    >>> walk = random_walk(0.9, samples=200, period=50, seed=0)
    >>> bool((walk.stream.centres == walk.test.centres).all())
    True
    """
    stream = piecewise_random_walk(samples, correlation=level, period=period, seed=seed)
    return Walk(stream, stream.redraw(_TEST_SEED + seed))


def minibatches(
    stream: Stream, size: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inputs and targets of shape (steps, size): at step t, samples of X_t ~ N(S_t, beta^2).

    >>> stream = random_walk(0.9, samples=200, period=50, seed=0).stream
    >>> X, Y = minibatches(stream, 50, seed=0)
    >>> X.shape, Y.shape
    ((200, 50), (200, 50))
    """
    rng = np.random.default_rng(_MINIBATCH_SEED + seed)
    X = rng.normal(stream.centres[:, None], stream.spread, size=(len(stream.y), size))
    return X, chirp(X)


def squared_error(predicted: NDArray[np.floating], target: NDArray[np.float64]) -> float:
    """The mean squared error; infinite if the learner has diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean((np.asarray(predicted, dtype=np.float64) - target) ** 2))
    return error if np.isfinite(error) else float("inf")
