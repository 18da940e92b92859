"""Extreme weights, inputs and orders of calls: a model stays right, or refuses and stays as is."""

import numpy as np
import pytest

from losse import FTLRegressor, LosseEncoder
from tests.ftl.models import assert_identical

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]


def grids(**options):
    return LosseEncoder(4, 4, **{"scaling": (-3, 3), **options})


@pytest.mark.parametrize("ridge", [1e-9, 1e-5, "auto"])
def test_single_precision_does_not_diverge_under_a_discount(ridge):
    """Rounding makes A + lambda I indefinite, and the inverse is then made anew."""
    rows = np.random.default_rng(1).normal(size=(2500, 3))
    targets = np.sin(2 * rows[:, 0]) + rows[:, 1]
    model = FTLRegressor(grids(linear=True), ridge=ridge, discount=0.99, dtype="float32")
    for start in range(0, 2500, 25):
        part = slice(start, start + 25)
        model.partial_fit(rows[part], targets[part])
        assert np.abs(model.predict(rows[part]) - targets[part]).max() < 3.0


@pytest.mark.parametrize("solver", ["sparse", "exact", "dense"])
@pytest.mark.parametrize("scaling", [None, "standard"])
@pytest.mark.parametrize("size", [1e160, 1.7e308])
def test_inputs_whose_squares_leave_the_range_are_refused(solver, scaling, size):
    model = FTLRegressor(grids(scaling=scaling, linear=True), solver=solver, ridge=1e-5)
    model.fit(X[:50], Y[:50])
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"X has an entry of size .* scale it down"):
        model.partial_fit(np.full((1, 3), size), [1.0])
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("solver", ["sparse", "exact", "dense"])
def test_the_largest_inputs_leave_finite_weights(solver):
    model = FTLRegressor(grids(scaling=None, linear=True), solver=solver, ridge=1e-5)
    model.fit(X[:50], Y[:50]).partial_fit(np.full((1, 3), 1e99), [1.0])
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize(
    ("options", "weight"), [({"dtype": "float32"}, 1e38), ({"discount": 0.9}, 1e100)]
)
def test_weights_that_would_drown_all_others_are_refused(options, weight):
    model = FTLRegressor(grids(), ridge=1e-5, **options).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="sample_weight has an entry of size"):
        model.partial_fit(X[50:51], Y[50:51], sample_weight=[weight])
    assert model.n_samples_seen_ == 50


def test_rows_of_tiny_weight_are_counted():
    model = FTLRegressor(grids(), ridge=1e-5).fit(X, Y)
    model.partial_fit(X[:3], Y[:3], sample_weight=[1e-18] * 3)
    assert model.n_samples_seen_ == 603


def test_what_is_left_is_not_forgotten_when_it_weighs_little():
    """Of 500 rows under a discount of 0.9, the first 300 weigh 1e-9 of all."""
    model = FTLRegressor(grids(), ridge=1e-5, discount=0.9).fit(X[:500], Y[:500])
    before = model.predict(X)
    with pytest.raises(ValueError, match="the rows that would be left weigh less"):
        model.unlearn(X[300:500], Y[300:500])
    assert model.n_samples_seen_ == 500
    np.testing.assert_array_equal(model.predict(X), before)
    model.unlearn(X[:500], Y[:500], age=np.arange(499, -1, -1))  # everything may go
    assert model.n_samples_seen_ == 0


def test_models_that_clip_differently_do_not_merge():
    wide = grids(scaling=None).fit(X)
    clipped = grids().fit(X)
    clipped.projection_ = wide.projection_
    one, other = (FTLRegressor(each, ridge=1e-5).fit(X, Y) for each in (wide, clipped))
    with pytest.raises(ValueError, match="not the same"):
        one.merge(other)


def test_a_source_of_past_data_that_fails_leaves_the_model_as_it_was():
    rows = []

    def past():
        if len(rows) > 100:
            raise OSError("disk gone")
        return X[: len(rows)], Y[: len(rows)]

    model = FTLRegressor(grids(), ridge=1e-3, past=past)
    for start in range(0, 100, 20):
        rows.extend(range(20))
        model.partial_fit(X[start : start + 20], Y[start : start + 20])
    untouched = FTLRegressor(grids(), ridge=1e-3, past=past)
    rows.clear()
    for start in range(0, 100, 20):
        rows.extend(range(20))
        untouched.partial_fit(X[start : start + 20], Y[start : start + 20])
    rows.extend(range(200))
    with pytest.raises(OSError, match="disk gone"):
        model.partial_fit(X[100:300], Y[100:300])
    assert_identical(model, untouched)
