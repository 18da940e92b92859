"""Predictions follow every shift and scale of the targets, whatever has happened to the model."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from losse import (
    AdaptiveEncoder,
    FourierEncoder,
    FTLRegressor,
    LosseEncoder,
    ReLUEncoder,
    TileEncoder,
)
from losse.ftl import merge_all
from tests.ftl.models import large_models

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * RNG.normal(size=(300, 2))
TESTS = RNG.normal(size=(40, 3))
ENCODERS = {
    "adaptive": AdaptiveEncoder(10, 3, n_stages=1, warm_up=150),
    "losse": LosseEncoder(10, 5, scaling=(-3, 3)),
    "linear": LosseEncoder(10, 4, linear=True),
    "tile": TileEncoder(10, 4),
    "fourier": FourierEncoder(60),
    "relu": ReLUEncoder(60),
}
# The cascade of an adaptive encoder computes in single precision.
TOLERANCES = {"adaptive": 1e-4, "float32": 1e-4}

factors = st.floats(-6, 9).map(lambda power: 10.0**power)
shifts = st.just(0.0) | st.floats(-6, 9).flatmap(
    lambda power: st.sampled_from([10.0**power, -(10.0**power)])
)


def learned(model, Y, sizes=(1, 49, 150, 100)):
    start = 0
    for size in sizes:
        model.partial_fit(X[start : start + size], Y[start : start + size])
        start += size
    return model


def rounding(a, c, tolerance):
    """How exactly standardised predictions can be had of targets that are a times Y, plus c."""
    return tolerance + 1e-14 * abs(c / a)


def assert_equivariant(make, a, c, tolerance=1e-7):
    """The same of targets and of these times a, plus c: predictions, deviations and the ridge."""
    plain, other = make(Y), make(a * Y + c)
    expected, std = plain.predict(TESTS, return_std=True)
    found, found_std = other.predict(TESTS, return_std=True)
    atol = rounding(a, c, tolerance)
    np.testing.assert_allclose((found - c) / a, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(found_std / a, std, rtol=1000 * atol)
    assert other.ridge_ == pytest.approx(plain.ridge_)


@pytest.mark.parametrize("name", ENCODERS)
@given(factors, shifts)
@example(1.0, 1e9)
@example(1e-6, 1.0)
@example(1e9, 0.0)
@settings(max_examples=4, deadline=None)
def test_predictions_are_equivariant(name, a, c):
    if abs(c / a) > 1e9:  # fewer than seven digits of the targets are left
        c = np.sign(c) * 1e9 * abs(a)
    tolerance = TOLERANCES.get(name, 1e-7)
    assert_equivariant(lambda Y: learned(FTLRegressor(ENCODERS[name]), Y), a, c, tolerance)


@pytest.mark.parametrize(("a", "c"), [(1.0, 1e6), (1e-6, 0.0), (1e9, 1e9)])
@pytest.mark.parametrize("solver", ["sparse", "dense", "exact"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("large", [False, True])
def test_every_solver_is_equivariant(solver, dtype, large, a, c):
    tolerance = TOLERANCES.get(dtype, 1e-7)
    if large and solver == "exact":  # where rounding decides how many iterations are enough
        tolerance = 0.02
    with large_models(large):
        encoder = LosseEncoder(10, 4, scaling=(-3, 3))
        model = {"solver": solver, "ridge": 1e-3, "center": True, "dtype": dtype}
        assert_equivariant(lambda Y: learned(FTLRegressor(encoder, **model), Y), a, c, tolerance)


@pytest.mark.parametrize(("a", "c"), [(1.0, 1e6), (1e-6, 0.0), (1e9, 1e9)])
@pytest.mark.parametrize("solver", ["sparse", "auto"])
def test_what_changes_the_memories_is_equivariant(solver, a, c, tmp_path):
    encoder = LosseEncoder(10, 4, scaling=(-3, 3))

    def make(Y):
        def model(part):
            new = FTLRegressor(encoder, solver=solver, discount=0.99, center=True, ridge=1e-3)
            return new.fit(X[part], Y[part])

        merged = merge_all([model(slice(100)), model(slice(100, 101)), model(slice(101, 200))])
        merged.merge(model(slice(200, 250)))
        merged.partial_fit(X[250:], Y[250:]).unlearn(X[-20:], Y[-20:])
        merged.save(tmp_path / "model.losse")
        return FTLRegressor.load(tmp_path / "model.losse").partial_fit(X[-20:], Y[-20:])

    assert_equivariant(make, a, c)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_the_first_rows_are_equivariant(n_rows):
    assert_equivariant(lambda Y: FTLRegressor().fit(X[:n_rows], Y[:n_rows]), 1e-3, 1e4, 1e-9)


@pytest.mark.parametrize("solver", ["dense", "exact"])
@pytest.mark.parametrize("encoder", [ENCODERS["losse"], ENCODERS["fourier"]], ids=["grids", "cos"])
def test_predictions_are_those_of_ridge_regression_on_centred_targets(solver, encoder):
    """With the mean of all rows, though the units are those of the first."""
    weights = np.random.default_rng(1).uniform(0.5, 2, size=300)
    model = FTLRegressor(encoder, solver=solver, ridge=1e-2, center=True)
    for start, end in ((0, 3), (3, 300)):
        model.partial_fit(X[start:end], Y[start:end] + 7, weights[start:end])
    phi = model.encoder_.transform(X)
    mean = np.average(Y + 7, axis=0, weights=weights)
    ridge = Ridge(1e-2 * weights.sum(), fit_intercept=False, solver="cholesky")
    ridge.fit(phi, Y + 7 - mean, weights)
    expected = mean + ridge.predict(model.encoder_.transform(TESTS))
    tolerance = 1e-9 if solver == "dense" else 0.05  # an objective within a percent
    np.testing.assert_allclose(model.predict(TESTS), expected, atol=tolerance)
    np.testing.assert_allclose(
        model.predict(TESTS), model.encoder_.transform(TESTS) @ model.weights_ + model.intercept_
    )


@pytest.mark.parametrize("center", [True, False])
def test_merging_is_learning_all_rows(center):
    """Though each model has units of its own."""
    encoder = ENCODERS["losse"].fit(X)
    parts = (slice(1), slice(1, 2), slice(2, 150), slice(150, 300))
    far = Y + np.repeat([0.0, 100.0], 150)[:, None]

    def model():
        return FTLRegressor(encoder, solver="dense", ridge=1e-3, center=center)

    whole = model().fit(X, far)
    merged = merge_all([model().fit(X[part], far[part]) for part in parts])
    np.testing.assert_allclose(merged.predict(TESTS), whole.predict(TESTS), rtol=1e-8)
    rest = merged.unlearn(X[150:], far[150:])
    np.testing.assert_allclose(
        rest.predict(TESTS), model().fit(X[:150], far[:150]).predict(TESTS), atol=1e-6
    )
    std = rest.predict(TESTS, return_std=True)[1]
    expected = model().fit(X[:150], far[:150]).predict(TESTS, return_std=True)[1]
    np.testing.assert_allclose(std, expected, rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e-12])
def test_a_constant_is_predicted_to_the_last_bit(value):
    model = FTLRegressor()
    for start in range(0, 300, 60):
        model.partial_fit(X[start : start + 60], np.full(60, value))
        mean, std = model.predict(TESTS, return_std=True)
        assert (mean == value).all()
        assert (std == 0).all()
    assert model.regret_[0] == 0


def test_an_output_that_begins_to_vary_is_learned():
    late = Y.copy()
    late[:200, 1] = 5.0
    encoder = ENCODERS["losse"]
    for c in (0.0, 1e6):
        model = FTLRegressor(encoder, solver="dense", ridge=1e-3, center=True)
        whole = model.fit(X, late + c).predict(TESTS)
        model.fit(X[:200], late[:200] + c).partial_fit(X[200:], late[200:] + c)
        np.testing.assert_allclose(model.predict(TESTS), whole, atol=1e-7)


def test_errors_before_learning_are_equivariant():
    one, other = (learned(FTLRegressor(), values) for values in (Y, 1e-3 * Y + 50))
    assert other.prequential_error_ == pytest.approx(one.prequential_error_, rel=1e-4)
    np.testing.assert_allclose(other.regret_, 1e-6 * one.regret_, rtol=1e-4)


@pytest.mark.parametrize(
    ("n_rows", "constants", "tolerance"),
    [
        (200, (10, 100, 1000, 1e6), 1e-4),
        (400, (1e6,), 1e-4),
        # Stages in single precision round differently, and the best of them may be another.
        pytest.param(1000, (100, 1e6), 5e-3, marks=pytest.mark.long),
    ],
)
def test_the_default_model_does_not_mind_a_constant(n_rows, constants, tolerance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows + 500, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    scores = []
    for shift in (0, *constants):
        model = FTLRegressor().fit(X[:n_rows], y[:n_rows] + shift)
        scores.append(model.score(X[n_rows:], y[n_rows:] + shift))
    assert scores[0] > 0.93
    assert scores == pytest.approx([scores[0]] * len(scores), abs=tolerance)


@pytest.mark.parametrize("name", ENCODERS)
def test_inputs_far_from_zero_are_no_matter(name):
    encoder = ENCODERS[name]
    if encoder.scaling != "standard":
        encoder = LosseEncoder(10, 5)
    near = learned(FTLRegressor(encoder), Y, (200, 100)).predict(TESTS)
    far = FTLRegressor(encoder).partial_fit(X[:200] + 1e6, Y[:200])
    far.partial_fit(X[200:] + 1e6, Y[200:])
    np.testing.assert_allclose(far.predict(TESTS + 1e6), near, atol=1e-3)


def test_the_paper_s_model_is_not_centred_unless_asked():
    far = Y + 1000
    model = FTLRegressor(LosseEncoder(10, 5, scaling=(-3, 3)), ridge=1e-2)
    assert (model.fit(X[:50], far[:50]).intercept_ == 0).all()
    model.set_params(center=True).fit(X[:50], far[:50])
    np.testing.assert_allclose(model.intercept_, far[:50].mean(axis=0))


def test_a_centred_model_cannot_be_merged_with_another():
    encoder = LosseEncoder(5, 4).fit(X)
    one, other = (FTLRegressor(encoder, center=center).fit(X, Y) for center in (True, False))
    with pytest.raises(ValueError, match=r"center=False.*center=True"):
        one.merge(other)


@pytest.mark.parametrize("center", ["yes", None, 2.5])
def test_a_center_that_is_not_known_is_refused(center):
    with pytest.raises(ValueError, match="center"):
        FTLRegressor(center=center).fit(X, Y)
