"""Directions of grids: random ones of few inputs, or gradients of the targets.

The part of the gradients that differs from sample to sample is what a linear model misses,
and along it grids are worth their cells.
"""

import numpy as np

from losse.encoders.base import truncated_normal
from losse.typing import Array


def few_inputs(
    rng: np.random.Generator, n_features: int, axes: tuple[int, ...], per_axis: int
) -> Array:
    """Directions that mix ``per_axis`` inputs each, of unit length.

    >>> P = few_inputs(np.random.default_rng(0), 9, (5,), 2)
    >>> (P != 0).sum(axis=0), bool(np.allclose((P**2).sum(axis=0), 1))
    (array([2, 2, 2, 2, 2]), True)
    """
    chance = rng.uniform(size=(n_features, *axes))
    chosen = chance <= np.sort(chance, axis=0)[per_axis - 1]
    directions = np.where(chosen, truncated_normal(rng, chance.shape), 0.0)
    return np.asarray(directions / np.sqrt((directions**2).sum(axis=0)))


def draw_directions(
    gradients: Array, count: int, together: int, rng: np.random.Generator
) -> Array | None:
    """Gradients, (n_features, count, together), those drawn together of the same target.

    ``gradients`` are (places, outputs, n_features). A target is drawn by the power of its
    gradients. None if there are none.

    >>> G = np.zeros((10, 2, 3))
    >>> G[:, 1, 0] = 1.0  # only the second target depends on anything
    >>> draw_directions(G, 2, 1, np.random.default_rng(0))[:, :, 0]
    array([[1., 1.],
           [0., 0.],
           [0., 0.]])
    """
    power = np.einsum("psf,psf->s", gradients, gradients)
    total = power.sum()
    if not (np.isfinite(total) and total > 0):
        return None
    output = rng.choice(len(power), size=(count, 1), p=power / total)
    place = rng.integers(len(gradients), size=(count, together))
    return np.moveaxis(gradients[place, output], 2, 0)


def unit_spread(directions: Array, V: Array, weights: Array) -> Array:
    """The directions, scaled so that the projections of rows have a standard deviation of one."""
    centred = V - np.average(V, axis=0, weights=weights)
    covariance = (centred * (weights / weights.sum())[:, None]).T @ centred
    axes = directions.reshape(len(directions), -1)
    variance = np.einsum("fa,fa->a", axes, covariance @ axes).reshape(directions.shape[1:])
    spread = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(directions / np.where(spread > 1e-9, spread, 1.0))
