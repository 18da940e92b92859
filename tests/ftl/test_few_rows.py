"""Of few or noisy rows, the default model is at least as good as ridge regression on the inputs."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from losse import FTLRegressor

TOLERANCE = 0.05
"""Of R2: what the choice of a ridge from fifty rows is worth."""
ON_AVERAGE = 0.015
"""Of R2, over three orders of the rows."""


def diabetes(n):
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], y[order], n


def friedman(n):
    return *make_friedman1(n + 500, noise=1.0, random_state=0), n


def wide(n, noise):
    return *make_regression(n + 300, 500, n_informative=10, noise=noise, random_state=0), n


def linear(n, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 500, 10))
    return X, X @ rng.normal(size=10) + noise * rng.normal(size=len(X)), n


CASES = {
    "diabetes, 50": lambda: diabetes(50),
    "diabetes, 330": lambda: diabetes(330),
    "friedman, 50": lambda: friedman(50),
    "friedman, 200": lambda: friedman(200),
    "500 inputs, 100": lambda: wide(100, 1.0),
    "500 inputs, noise": lambda: wide(100, 50.0),
    "linear, no noise": lambda: linear(60, 0.0),
    "linear, noise": lambda: linear(60, 5.0),
    "linear, noise, 300": lambda: linear(300, 5.0),
    "noise alone": lambda: linear(200, 1e3),
}


@pytest.mark.parametrize("case", CASES)
def test_at_least_as_good_as_ridge_regression(case):
    X, y, n = CASES[case]()
    gains = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        known, new = order[:n], order[n:]
        other = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 33)))
        expected = other.fit(X[known], y[known]).score(X[new], y[new])
        gains.append(FTLRegressor().fit(X[known], y[known]).score(X[new], y[new]) - expected)
    assert min(gains) >= -TOLERANCE
    assert np.mean(gains) >= -ON_AVERAGE


def test_what_bends_is_learned_from_fifty_rows():
    X, y, n = friedman(50)
    other = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 33)))
    linear = other.fit(X[:n], y[:n]).score(X[n:], y[n:])
    assert FTLRegressor().fit(X[:n], y[:n]).score(X[n:], y[n:]) > linear + 0.05


def test_rows_that_come_one_by_one_end_with_the_same_ridge_or_near():
    X, y, n = linear(200, 5.0)
    model = FTLRegressor()
    for start in range(0, n, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
    whole = FTLRegressor().fit(X[:n], y[:n])
    assert model.score(X[n:], y[n:]) > whole.score(X[n:], y[n:]) - TOLERANCE
