"""Rows that the tests learn, and the two forms of one model."""

import numpy as np

import losse.jax
from losse import FTLRegressor, LosseEncoder

N_ROWS = 160


def make(n_features=3, seed=0):
    """Inputs and three targets, one of them nothing but noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, n_features))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, -1], rng.normal(size=N_ROWS)])
    return X, Y


def pair(ridge=1e-2, solver="sparse", **options):
    """A regressor that has learned ten rows, and the same as a functional model."""
    X, Y = make()
    encoder = LosseEncoder(**{"n_grids": 4, "n_bins": 5, **options}).fit(X)
    regressor = FTLRegressor(encoder, solver=solver, ridge=ridge).fit(X[:10], Y[:10])
    return regressor, losse.jax.from_regressor(regressor)


def distance(values, expected):
    """Largest difference over the largest value."""
    return np.abs(np.asarray(values) - expected).max() / np.abs(expected).max()
