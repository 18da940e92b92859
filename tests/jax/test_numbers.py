"""Numbers of the functional form: features, updates, leaders and sums are `FTLRegressor`'s."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import losse.jax
from losse import FTLRegressor, LosseEncoder
from losse.ftl import merge_all
from tests.jax import rows

ENCODERS = {
    "paper": {},
    "scaled by bounds": {"scaling": (-2, 2)},
    "not scaled": {"scaling": None},
    "one axis": {"grid_dim": 1},
    "three axes": {"grid_dim": 3, "n_bins": 3},
    "linear": {"linear": True},
    "few inputs": {"inputs_per_axis": 2},
}
encoders = pytest.mark.parametrize("options", ENCODERS.values(), ids=ENCODERS)


@encoders
@pytest.mark.usefixtures("doubles")
def test_features_are_those_of_the_encoder(options):
    regressor, model = rows.pair(**options)
    X, _ = rows.make(seed=1)
    expected = regressor.encoder_.encode(X)
    indices, values = losse.jax.encode(model, X)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_allclose(values, expected.values, atol=1e-14)
    assert model.weights.shape == (expected.dimension, 3)


@encoders
@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("ridge", [1e-5, 1e-2])
def test_doubles_agree_to_nine_digits(options, ridge):
    regressor, model = rows.pair(ridge=ridge, **options)
    X, Y = rows.make()
    regressor.partial_fit(X[10:], Y[10:])
    model = losse.jax.update(model, X[10:], Y[10:])
    assert model.dtype == np.float64
    assert rows.distance(losse.jax.predict(model, X), regressor.predict(X)) < 1e-9
    assert rows.distance(model.weights, regressor.weights_) < 1e-9
    assert int(model.memory.n_samples) == regressor.n_samples_seen_


@encoders
def test_floats_agree_to_five_digits(options):
    regressor, model = rows.pair(ridge=1e-2, **options)
    X, Y = rows.make()
    regressor.partial_fit(X[10:], Y[10:])
    model = losse.jax.update(model, X[10:], Y[10:])
    assert model.dtype == np.float32
    assert rows.distance(losse.jax.predict(model, X), regressor.predict(X)) < 1e-5


@pytest.mark.usefixtures("doubles", "small_squares")
def test_a_packed_model_agrees():
    regressor, model = rows.pair()
    X, Y = rows.make()
    assert model.memory.A.shape == (10, 36, 36)  # 4 grids make 10 pairs
    regressor.partial_fit(X[10:], Y[10:])
    model = losse.jax.update(model, X[10:], Y[10:])
    assert rows.distance(losse.jax.predict(model, X), regressor.predict(X)) < 1e-9
    back = losse.jax.to_regressor(model).partial_fit(X, Y)
    assert rows.distance(back.weights_, regressor.partial_fit(X, Y).weights_) < 1e-9


@pytest.mark.usefixtures("doubles", "small_squares")
def test_rows_that_wait_in_a_packed_memory_come_along():
    regressor, model = rows.pair(solver="auto")
    X, _ = rows.make()
    phi = regressor.encoder_.transform(X[:10]).toarray()
    A = phi.T @ phi
    np.testing.assert_allclose(model.memory.A[0], A[:36, :36], atol=1e-12)
    np.testing.assert_allclose(model.memory.A[1], A[36:72, :36], atol=1e-12)


def test_a_packed_memory_is_half_as_large_as_a_square():
    model = jax.eval_shape(
        lambda key: losse.jax.init(key, 2, 1, n_grids=90, n_bins=10), jax.random.key(0)
    )
    assert model.memory.A.size < 0.51 * len(model.weights) ** 2


@pytest.mark.usefixtures("doubles")
def test_one_row_at_a_time_is_the_same_as_a_batch():
    _, model = rows.pair()
    X, Y = rows.make()
    batch = losse.jax.update(model, X[:20], Y[:20])
    for x, y in zip(X[:20], Y[:20], strict=True):
        model = losse.jax.update(model, x, y)
    np.testing.assert_allclose(model.weights, batch.weights, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("doubles")
def test_sample_weights_agree():
    regressor, model = rows.pair()
    X, Y = rows.make()
    weights = np.random.default_rng(2).integers(0, 4, size=len(X)).astype(float)
    regressor.partial_fit(X, Y, sample_weight=weights)
    model = losse.jax.update(model, X, Y, weights)
    assert rows.distance(model.weights, regressor.weights_) < 1e-9
    assert int(model.memory.n_samples) == regressor.n_samples_seen_
    assert float(model.memory.total) == 10 + weights.sum()


@pytest.mark.parametrize("learn", [losse.jax.update, losse.jax.accumulate])
def test_a_row_of_weight_zero_changes_nothing_whatever_it_holds(learn):
    _, model = rows.pair()
    X, Y = rows.make()
    X[1], Y[2] = np.nan, np.inf
    masked = learn(model, X[:4], Y[:4], np.array([1.0, 0.0, 0.0, 1.0]))
    plain = learn(model, X[[0, 3]], Y[[0, 3]])
    for one, other in zip(jax.tree.leaves(masked), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("doubles")
def test_sums_and_the_leader_are_algorithm_one():
    regressor, model = rows.pair(solver="dense")
    X, Y = rows.make()
    summed = losse.jax.accumulate(model, X, Y)
    np.testing.assert_array_equal(summed.weights, model.weights)
    expected = regressor.partial_fit(X, Y).weights_
    assert rows.distance(losse.jax.leader(summed).weights, expected) < 1e-9


def test_the_leader_of_nothing_predicts_zero():
    model = losse.jax.init(jax.random.key(0), 2, 2, n_grids=2)
    assert not losse.jax.leader(model).weights.any()


@pytest.mark.usefixtures("doubles")
def test_merged_models_have_learned_all_rows():
    X, Y = rows.make()
    encoder = LosseEncoder(n_grids=4, n_bins=5).fit(X)
    regressors = [
        FTLRegressor(encoder, solver="sparse", ridge=1e-3).fit(X[k::3], Y[k::3]) for k in range(3)
    ]
    merged = losse.jax.merge(*map(losse.jax.from_regressor, regressors))
    assert rows.distance(merged.weights, merge_all(regressors).weights_) < 1e-9
    assert int(merged.memory.n_samples) == len(X)


@pytest.mark.usefixtures("doubles", "small_squares")
def test_merged_packed_models_add_up_and_start_from_their_mean():
    X, Y = rows.make()
    empty = losse.jax.init(jax.random.key(0), 3, 3, n_grids=4, n_bins=5, ridge=1e-2)
    one, other = (losse.jax.update(empty, X[part], Y[part]) for part in (slice(40), slice(40, 160)))
    merged, whole = losse.jax.merge(one, other), losse.jax.update(empty, X, Y)
    assert rows.distance(merged.memory.A, whole.memory.A) < 1e-12
    assert rows.distance(merged.memory.B, whole.memory.B) < 1e-12
    np.testing.assert_allclose(merged.weights, 0.25 * one.weights + 0.75 * other.weights)


def test_an_input_far_outside_stays_in_its_grids_and_nan_gives_nan():
    _, model = rows.pair(scaling=None)
    predicted = losse.jax.predict(model, jnp.array([[1e30] * 3, [-1e30] * 3, [jnp.nan] * 3]))
    assert np.isfinite(predicted[:2]).all()
    assert np.isnan(predicted[2]).all()
    indices, values = losse.jax.encode(model, jnp.full((1, 3), 1e30))
    assert (np.asarray(indices).reshape(4, 4) // 36 == np.arange(4)[:, None]).all()
    assert float(values.sum()) == pytest.approx(4)


def test_rounding_cannot_make_weights_infinite():
    """The same row many times and a tiny ridge: a singular system in single precision."""
    model = losse.jax.init(jax.random.key(0), 2, 1, n_grids=10, ridge=1e-12)
    model = losse.jax.update(model, np.full((50, 2), 0.3), np.ones((50, 1)))
    assert float(losse.jax.predict(model, np.full(2, 0.3))[0]) == pytest.approx(1, abs=1e-3)
