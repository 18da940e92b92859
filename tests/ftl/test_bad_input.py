"""Bad input raises the conventional error, names what is wrong, and changes nothing."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from losse import FTLRegressor, LosseEncoder
from losse.ftl import capacity
from losse.ftl.memories import memory_bytes
from tests.ftl.reference import stream

X, Y = stream(80)


def with_value(A, value):
    A = A.copy()
    A[3, 1] = value
    return A


BAD = [
    (with_value(X, np.nan), Y, None, ValueError, r"X contains NaN at \(3, 1\).*remove or replace"),
    (with_value(X, np.inf), Y, None, ValueError, r"X contains inf at \(3, 1\)"),
    (X, with_value(Y, np.nan), None, ValueError, r"y contains NaN at \(3, 1\)"),
    (X, with_value(Y, -np.inf), None, ValueError, r"y contains inf at \(3, 1\)"),
    (X[:, :2], Y, None, ValueError, "X has 2 features, but FTLRegressor is expecting 4"),
    (X[0], Y[0], None, ValueError, "Expected 2D array, got 1D array"),
    (X, Y[:, :2], None, ValueError, "y has 2 outputs, but the model was started with 3"),
    (X[:5], Y[:4], None, ValueError, "X has 5 rows but y has 4"),
    (X[:1], Y[0], None, ValueError, r"pass y\[None, :\]"),
    (X[:0], Y[:0], None, ValueError, "0 sample"),
    (X, None, None, ValueError, "y=None"),
    (X, Y[:, :, None], None, ValueError, "y has 3 dimensions"),
    (X.astype(str) + "a", Y, None, ValueError, "could not convert string to float"),
    (X, Y, np.ones(3), ValueError, r"sample_weight has shape \(3,\), expected \(80,\)"),
    (X, Y, -np.ones(80), ValueError, "negative entry, -1.0"),
    (X, Y, np.zeros(80), ValueError, "sample_weight is zero for every row"),
    (X, Y, np.full(80, np.nan), ValueError, "sample_weight contains NaN"),
    (X, Y, np.full(80, 1e308), ValueError, "sample_weight has an entry of size 1e[+]308: beyond"),
    (X, Y, np.full(80, 1e-308), ValueError, "sample_weight has an entry of 1e-308, below 1e-50"),
    (X, Y * 1e200, None, ValueError, "y has an entry of size .*scale it down"),
]


@pytest.mark.parametrize("solver", ["sparse", "dense", "exact"])
@pytest.mark.parametrize(("X_bad", "Y_bad", "weight", "error", "message"), BAD)
def test_a_trained_model_refuses_and_stays_as_it_was(solver, X_bad, Y_bad, weight, error, message):
    model = FTLRegressor(LosseEncoder(3, 4, 2), solver=solver, ridge=1e-5).fit(X, Y)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.partial_fit(X_bad, Y_bad, sample_weight=weight)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(("X_bad", "Y_bad", "weight", "error", "message"), BAD)
def test_a_new_model_refuses_and_stays_new(X_bad, Y_bad, weight, error, message):
    if "FTLRegressor is expecting" in message or "was started" in message:
        pytest.skip("concerns trained models")
    model = FTLRegressor(LosseEncoder(3, 4, 2), ridge=1e-5)
    with pytest.raises(error, match=message):
        model.fit(X_bad, Y_bad, sample_weight=weight)
    assert not hasattr(model, "encoder_")
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"solver": "magic"}, ValueError, r"solver='magic' is not known: use one of"),
        ({"ridge": -1.0}, ValueError, "ridge=-1.0 must be a finite number greater than 0"),
        ({"ridge": 0}, ValueError, "ridge=0"),
        ({"ridge": np.nan}, ValueError, "ridge=nan"),
        ({"ridge": "much"}, TypeError, "ridge='much'"),
        ({"discount": 0}, ValueError, "discount=0 must be above 0 and at most 1"),
        ({"discount": 1.5}, ValueError, "discount=1.5"),
        ({"dtype": "float16"}, ValueError, "dtype='float16' must be"),
        ({"encoder": "losse"}, TypeError, "encoder='losse' is not an encoder"),
        ({"encoder": LosseEncoder(n_bins=0)}, ValueError, "n_bins=0"),
    ],
)
def test_nonsense_parameters_are_refused(parameters, error, message):
    model = FTLRegressor(**parameters)
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "encoder_")


def test_an_encoder_fitted_on_other_data_is_refused():
    encoder = LosseEncoder().fit(X[:, :3])
    with pytest.raises(ValueError, match="X has 4 features, but encoder was fitted on 3"):
        FTLRegressor(encoder, ridge=1e-5).fit(X, Y)


def test_weights_before_learning():
    with pytest.raises(AttributeError, match="only after fit"):
        _ = FTLRegressor().weights_


def test_weights_are_a_copy():
    model = FTLRegressor(LosseEncoder(3, 4, 2), ridge=1e-5).fit(X, Y)
    before = model.predict(X)
    model.weights_[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("solver", ["auto", "sparse", "dense"])
def test_a_model_that_cannot_fit_says_how_much_it_needs(monkeypatch, solver):
    monkeypatch.setattr(capacity, "available_memory", lambda: 1e9)
    model = FTLRegressor(LosseEncoder(300, 10, 2), solver=solver, ridge=1e-5)
    with pytest.raises(MemoryError, match=r"36,300 features .* needs .* GB, but only 1.0 GB") as e:
        model.fit(X, Y)
    assert "Lower n_grids" in str(e.value)
    assert not hasattr(model, "encoder_")


def test_memory_at_300_grids():
    """At most 75 % (float64) and 40 % (float32) of the 7.5 GB that the paper's listing takes."""
    encoder = LosseEncoder(300, 10, 2)
    assert memory_bytes(encoder, "float64") <= 0.75 * 7.5e9
    assert memory_bytes(encoder, "float32") <= 0.40 * 7.5e9


def test_available_memory_is_plausible():
    assert capacity.available_memory() > 1e6


@pytest.mark.parametrize("solver", ["sparse", "dense", "exact"])
@pytest.mark.parametrize(("size", "weight"), [(1e99, 1.0), (1e-99, 1.0), (1.0, 1e49), (1.0, 1e-49)])
def test_what_is_large_or_small_but_allowed_is_learned(solver, size, weight):
    model = FTLRegressor(LosseEncoder(3, 4, 2), solver=solver, ridge=1e-5)
    expected = model.fit(X, Y).predict(X)
    got = model.fit(X, Y * size, sample_weight=weight).predict(X) / size
    np.testing.assert_allclose(got, expected, atol=0.05 * np.abs(expected).max())
