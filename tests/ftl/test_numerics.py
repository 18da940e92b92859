"""Awkward data: duplicates, constants, tiny ridges, few rows, many outputs, wide ranges."""

import numpy as np
import pytest

from losse import FTLRegressor, LosseEncoder, ReLUEncoder
from tests.ftl.reference import stream

SOLVERS = ["sparse", "dense", "exact", "auto"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("ridge", [1e-14, 1e-5])
def test_the_same_row_a_thousand_times(solver, ridge):
    model = FTLRegressor(LosseEncoder(5, 5, 2, scaling=None), solver=solver, ridge=ridge)
    for _ in range(10):
        model.partial_fit(np.ones((100, 3)), np.full((100, 2), 4.0))
    np.testing.assert_allclose(model.predict(np.ones((1, 3))), 4.0, rtol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_and_tiny_and_huge_features(solver):
    X, Y = stream(300)
    X = X * [1e-8, 1e8, 1, 1]
    X[:, 2] = 3.0
    model = FTLRegressor(LosseEncoder(10, 5, 2), solver=solver, ridge=1e-5)
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], Y[start : start + 50])
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_any_magnitude(solver):
    """Unscaled inputs make ReLU features of 1e6: the ridge vanishes beside their squares."""
    X, Y = stream(400)
    model = FTLRegressor(ReLUEncoder(60, scaling=None), solver=solver, ridge=1e-10)
    for start in range(0, 400, 20):
        model.partial_fit(1e6 * X[start : start + 20], Y[start : start + 20])
    assert np.isfinite(model.predict(1e6 * X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_outputs", [1, 7, 50])
def test_fewer_rows_than_features(solver, n_outputs):
    X, Y = stream(20, n_outputs=n_outputs)
    model = FTLRegressor(LosseEncoder(30, 10, 2), solver=solver, ridge=1e-5).fit(X, Y)
    assert model.weights_.shape == (3630, n_outputs)
    np.testing.assert_allclose(model.predict(X), Y, atol=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_dimensional_targets_give_one_dimensional_predictions(solver):
    X, Y = stream(50)
    flat = FTLRegressor(LosseEncoder(3, 5, 2), solver=solver, ridge=1e-5).fit(X, Y[:, 0])
    column = FTLRegressor(LosseEncoder(3, 5, 2), solver=solver, ridge=1e-5).fit(X, Y[:, :1])
    assert flat.predict(X).shape == (50,)
    np.testing.assert_array_equal(flat.predict(X), column.predict(X)[:, 0])


@pytest.mark.parametrize("dimension", [10, 40_000])
def test_from_ten_to_forty_thousand_features(dimension):
    X, Y = stream(300)
    encoder = LosseEncoder(2, 4, 1) if dimension == 10 else LosseEncoder(100, 19, 2)
    model = FTLRegressor(encoder, solver="auto", dtype="float32", ridge=1e-5).fit(X, Y)
    assert model.weights_.shape[0] == dimension
    assert np.isfinite(model.predict(X)).all()


def test_what_was_learned_stays_learned():
    """One region after the other: the error on the first does not grow."""
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 3, 3000)[:, None] + rng.normal(scale=0.02, size=(3000, 1))
    y = np.sin(3 * X[:, 0])
    model = FTLRegressor(LosseEncoder(10, 10, 2, scaling=None), solver="sparse", ridge=1e-5)
    model.partial_fit(X[:1000], y[:1000])
    before = np.abs(model.predict(X[:1000]) - y[:1000]).mean()
    for start in range(1000, 3000, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    after = np.abs(model.predict(X[:1000]) - y[:1000]).mean()
    assert before < 0.05
    assert after < 2 * before + 0.01
