"""Sums of functions of one input each, before the stages of a cascade."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor
from losse.encoders.additive import LEAST_ROWS, Additive, fit_additive
from losse.encoders.cascade import fit_cascade
from losse.work import finished


def thresholds(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 6))
    return X, 2.0 * (X[:, 0] > 0.3) - 1.0 * (X[:, 1] > -0.2) + 0.5 * (X[:, 2] < 0.5)


def fit(X, y):
    return finished(fit_additive(X, np.reshape(y, (len(X), -1)), np.ones(len(X))))


def test_codes_of_categories_become_a_table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 7, size=(1500, 2)).astype(float)
    tables = rng.normal(size=(2, 7))
    y = tables[0][X[:, 0].astype(int)] + tables[1][X[:, 1].astype(int)]
    additive, left_out = fit(X, y)
    assert additive.ends.tolist() == [7, 14]
    np.testing.assert_allclose(additive.predict(X)[:, 0], y, atol=0.02)
    np.testing.assert_allclose(left_out[:, 0], y, atol=0.02)


def test_functions_are_constant_beyond_their_knots_and_linear_between_them():
    X, y = thresholds(1200)
    additive, _ = fit(X, y)
    ends = np.array([[-1.0] * 6, [1.0] * 6])
    np.testing.assert_allclose(additive.predict(9 * ends), additive.predict(ends), atol=0.05)
    one, two = additive.knots[10], additive.knots[11]
    rows = np.zeros((3, 6))
    rows[:, 0] = one, (one + two) / 2, two
    first, middle, last = additive.predict(rows)
    np.testing.assert_allclose(middle, (first + last) / 2)


def test_predictions_of_rows_left_out_are_those_of_the_fit_without_them():
    X, y = thresholds(LEAST_ROWS + 1)
    _, left_out = fit(X, y)
    rest, _ = fit(X[1:], y[1:])
    assert left_out[0, 0] == pytest.approx(rest.predict(X[:1])[0, 0], abs=0.15)


def test_an_input_that_never_varies_and_few_rows():
    X, y = thresholds(1100)
    X[:, 3] = 5.0
    additive, _ = fit(X, y)
    assert np.isfinite(additive.predict(X)).all()
    assert fit(X[:900], y[:900]) is None
    wide = np.random.default_rng(0).normal(size=(1100, 200))
    assert fit(wide, wide[:, :1]) is None


def test_it_comes_first_for_thresholds_and_not_for_what_is_smooth():
    rng = np.random.default_rng(0)
    for y, comes in ((thresholds(1500)[1], True), (None, False)):
        X, _ = thresholds(1500)
        y = np.sin(X[:, 0] * X[:, 1] * 3 + X[:, 2]) if y is None else y
        Q = ((y - y.mean()) / y.std())[:, None]
        lead, *_ = finished(fit_cascade(X, Q, np.ones(len(X)), 1, rng))
        assert (lead is not None) == comes


def test_thresholds_are_learned(tmp_path):
    X, y = thresholds(2500)
    new, wanted = thresholds(1000, seed=1)
    model = FTLRegressor(AdaptiveEncoder(20, n_stages=2)).fit(X, y)
    assert model.score(new, wanted) > 0.98
    model.save(tmp_path / "model.losse")
    same = FTLRegressor.load(tmp_path / "model.losse")
    np.testing.assert_array_equal(same.predict(new), model.predict(new))


def test_sums():
    values = np.array([[0.0], [1.0], [10.0], [30.0], [100.0]])
    additive = Additive(np.array([0.0, 1.0, -1.0, 1.0]), np.array([2, 4]), values)
    np.testing.assert_allclose(additive.predict(np.array([[0.5, 0.0]])), [[0.5 + 20 + 100]])
