"""Synthetic data streams whose input distribution drifts while the target function stays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Stream(NamedTuple):
    """A regression stream in order of arrival: inputs, targets, and the drift behind them."""

    X: NDArray[np.float64]
    """Inputs, shape (n, 1)."""
    y: NDArray[np.float64]
    """Targets, shape (n,)."""
    centres: NDArray[np.float64]
    """Centre S_t of the input distribution at each step, shape (n,)."""
    spread: float
    """Standard deviation beta of the inputs around their centre."""

    def redraw(self, seed: int) -> Stream:
        """Draw the inputs again around the same centres: an independent test set."""
        x = np.random.default_rng(seed).normal(self.centres, self.spread)
        return self._replace(X=x[:, None], y=chirp(x))


def chirp(x: ArrayLike) -> NDArray[np.float64]:
    """The target function sin(2 pi x^2).

    >>> chirp([0.0, 0.5]).round(3)
    array([0., 1.])
    """
    return np.sin(2 * np.pi * np.square(np.asarray(x, dtype=np.float64)))


def piecewise_random_walk(
    n_samples: int,
    *,
    correlation: float,
    period: int = 50,
    bound: float = 1.0,
    seed: int = 0,
) -> Stream:
    """Sample the paper's piecewise random walk (section 4.2, appendix C.2).

    Inputs are Gaussian around a centre, x_t ~ N(S_t, beta^2). Every `period` (tau) steps the
    centre moves on, S <- (1 - c) S + N(0, sigma^2). One number d, the `correlation` level,
    sets all three constants,

        c = 1 - sqrt(1 - d),    sigma = d B / 2,    beta = sqrt(1 - d) B / 2,

    such that x_t has the same distribution N(0, (B / 2)^2) for every d: only the order in which
    inputs arrive differs. d = 0 is an i.i.d. stream; near 1 a narrow window jumps about. The
    first centre comes from the walk's equilibrium N(0, d (B / 2)^2), so this holds from the
    first sample. Targets are sin(2 pi x^2), without noise.

    Parameters
    ----------
    n_samples
        Length of the stream.
    correlation
        Correlation level d in [0, 1).
    period
        Number of steps tau between two moves of the centre.
    bound
        B: 95 % of all inputs lie within [-B, B].
    seed
        Seed of the generator.

    Examples
    --------
    >>> stream = piecewise_random_walk(1000, correlation=0.9, period=100, seed=1)
    >>> stream.X.shape, stream.y.shape, len(np.unique(stream.centres))
    ((1000, 1), (1000,), 10)
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be in [0, 1), got {correlation}")
    if period < 1:
        raise ValueError(f"period must be at least 1, got {period}")
    if not (bound > 0 and math.isfinite(bound)):
        raise ValueError(f"bound must be positive and finite, got {bound}")

    half = bound / 2
    keep = math.sqrt(1 - correlation)  # 1 - c
    sigma = correlation * half
    spread = keep * half

    rng = np.random.default_rng(seed)
    walk = np.empty(-(-n_samples // period))
    walk[0] = rng.normal(0.0, math.sqrt(correlation) * half)
    for k in range(1, len(walk)):
        walk[k] = keep * walk[k - 1] + rng.normal(0.0, sigma)
    centres = np.repeat(walk, period)[:n_samples]
    x = rng.normal(centres, spread)
    return Stream(X=x[:, None], y=chirp(x), centres=centres, spread=spread)
