"""Conversion from and to `FTLRegressor`: nothing is lost on the way."""

import jax
import numpy as np
import pytest

import losse.jax
from losse import FTLRegressor, LosseEncoder
from tests.jax import rows


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("solver", ["sparse", "dense", "exact", "auto"])
def test_there_and_back_again(solver):
    regressor, _ = rows.pair(solver=solver, linear=True)
    X, Y = rows.make()
    regressor.partial_fit(X[10:60], Y[10:60])
    back = losse.jax.to_regressor(losse.jax.from_regressor(regressor))
    np.testing.assert_array_equal(back.weights_, regressor.weights_)
    np.testing.assert_array_equal(back.predict(X), regressor.predict(X))
    assert back.encoder_.same_features(regressor.encoder_)
    assert (back.n_samples_seen_, back.ridge_) == (60, regressor.ridge_)
    twice = FTLRegressor(regressor.encoder_, solver="dense", ridge=1e-2)
    twice.fit(np.tile(X[:60], (2, 1)), np.tile(Y[:60], (2, 1)))
    merged = back.merge(regressor)  # the memories are there, too
    assert rows.distance(merged.weights_, twice.weights_) < 1e-9


@pytest.mark.usefixtures("doubles")
def test_both_forms_go_on_alike():
    regressor, model = rows.pair()
    X, Y = rows.make()
    model = losse.jax.update(model, X[10:50], Y[10:50])
    back = losse.jax.to_regressor(model).partial_fit(X[50:], Y[50:])
    regressor.partial_fit(X[10:], Y[10:])
    assert rows.distance(back.weights_, regressor.weights_) < 1e-9
    deviations = [one.predict(X, return_std=True)[1] for one in (back, regressor)]
    assert rows.distance(*deviations) < 1e-6


def test_targets_that_are_numbers_stay_numbers():
    X, Y = rows.make()
    encoder = LosseEncoder(n_grids=3, n_bins=4)
    regressor = FTLRegressor(encoder, solver="sparse", ridge=1e-2).fit(X, Y[:, 0])
    model = losse.jax.from_regressor(regressor)
    assert losse.jax.predict(model, X).shape == (160,)
    assert losse.jax.predict(model, X[0]).shape == ()
    model = losse.jax.update(losse.jax.update(model, X[0], Y[0, 0]), X[1:], Y[1:, 0])
    regressor.partial_fit(X, Y[:, 0])
    assert rows.distance(losse.jax.to_regressor(model).predict(X), regressor.predict(X)) < 1e-4


def test_floats_become_a_regressor_of_floats():
    model = losse.jax.init(jax.random.key(0), 3, 3, n_grids=4, scaling=(-3, 3), ridge=1e-2)
    X, Y = rows.make()
    model = losse.jax.update(model, X, Y)
    regressor = losse.jax.to_regressor(model)
    assert regressor.dtype == "float32"
    assert regressor.ridge_ == pytest.approx(1e-2)
    assert rows.distance(losse.jax.predict(model, X), regressor.predict(X)) < 1e-5
