"""Wrong calls: errors name the argument, its value and what to do, also while JAX traces."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import losse.jax
from losse import FTLRegressor, LosseEncoder, TileEncoder
from tests.jax import rows


@pytest.fixture(scope="module")
def model():
    return losse.jax.init(jax.random.key(0), 3, 2, n_grids=2, n_bins=3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_features": 0}, "n_features=0"),
        ({"n_outputs": 0}, "n_outputs=0"),
        ({"n_grids": -1}, "n_grids=-1"),
        ({"n_bins": 0}, "n_bins=0"),
        ({"grid_dim": 0}, "grid_dim=0"),
        ({"ridge": 0.0}, r"ridge=0\.0"),
        ({"scaling": (1, 0)}, r"scaling=\(1, 0\): every low bound"),
        ({"scaling": ([0, 0], 1)}, "does not fit 3 inputs"),
        ({"scaling": "standard"}, "does not fit 3 inputs"),
        ({"dtype": "int32"}, "dtype='int32'"),
        ({"dtype": "float64"}, "jax_enable_x64"),
        ({"linear": True, "n_grids": 1000}, "linear=True with 121,004 features"),
    ],
)
def test_init_says_what_is_wrong(arguments, words):
    with pytest.raises(ValueError, match=words):
        losse.jax.init(jax.random.key(0), **{"n_features": 3, "n_outputs": 1, **arguments})


@pytest.mark.parametrize("function", [losse.jax.predict, losse.jax.encode])
@pytest.mark.parametrize("shape", [(), (2,), (5, 4)])
def test_inputs_have_the_width_of_the_model(function, shape, model):
    with pytest.raises(ValueError, match=r"x has shape .* the model has 3 inputs"):
        jax.jit(function)(model, jnp.zeros(shape))


@pytest.mark.parametrize("learn", [losse.jax.update, losse.jax.accumulate])
@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((5, 2), (5, 2)), "x has shape"),
        (((5, 3), (5,)), r"y has shape \(5,\), .* need \(5, 2\)"),
        (((5, 3), (4, 2)), r"y has shape \(4, 2\), .* need \(5, 2\)"),
        (((3,), (1,)), r"y has shape \(1,\), .* need \(2,\)"),
        (((2, 5, 3), (2, 5, 2)), "reshape more axes into one"),
        (((5, 3), (5, 2), (4,)), r"sample_weight has shape \(4,\), .* \(5,\)"),
    ],
)
def test_rows_to_learn_fit_the_model(learn, shapes, words, model):
    with pytest.raises(ValueError, match=words):
        learn(model, *map(jnp.zeros, shapes))


def test_models_of_other_features_are_not_merged(model):
    with pytest.raises(ValueError, match=r"n_bins=4.*n_bins=3"):
        losse.jax.merge(model, losse.jax.init(jax.random.key(0), 3, 2, n_grids=2, n_bins=4))
    with pytest.raises(ValueError, match="another projection or scaling"):
        losse.jax.merge(model, losse.jax.init(jax.random.key(1), 3, 2, n_grids=2, n_bins=3))
    with pytest.raises(TypeError, match="other=3"):
        losse.jax.merge(model, 3)


def test_a_large_model_has_no_leader_by_factorisation():
    large = jax.eval_shape(lambda key: losse.jax.init(key, 2, 1, n_grids=90), jax.random.key(0))
    with pytest.raises(ValueError, match="10,890 features, too many"):
        jax.eval_shape(losse.jax.leader, large)


def test_what_has_no_functional_form_is_refused():
    X, Y = rows.make()
    with pytest.raises(TypeError, match=r"TileEncoder.*only a LosseEncoder"):
        losse.jax.from_regressor(FTLRegressor(TileEncoder(n_grids=2)).fit(X, Y))
    discounted = FTLRegressor(LosseEncoder(n_grids=2), discount=0.9).fit(X, Y)
    with pytest.raises(ValueError, match=r"discount=0\.9"):
        losse.jax.from_regressor(discounted)
    weighted = FTLRegressor(LosseEncoder(n_grids=2, linear=3.0), center=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"linear=3\.0"):
        losse.jax.from_regressor(weighted)
    with pytest.raises(ValueError, match="center='auto'"):
        losse.jax.from_regressor(FTLRegressor(LosseEncoder(n_grids=2)).fit(X, Y))
    with pytest.raises(TypeError, match="is not an FTLRegressor"):
        losse.jax.from_regressor(LosseEncoder())


@pytest.mark.usefixtures("small_squares")
def test_terms_beside_packed_grids_are_refused():
    with pytest.raises(ValueError, match="linear part beside 148 features"):
        rows.pair(linear=True)


def test_a_traced_model_is_not_converted(model):
    with pytest.raises(TypeError, match="outside of jit"):
        jax.jit(losse.jax.to_regressor)(model)


def test_without_jax_the_error_names_the_extra():
    code = "import sys; sys.modules['jax'] = None; import losse.jax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "losse.jax needs 'jax': pip install 'losse[jax]'" in done.stderr


def test_a_model_never_changes(model):
    before = jax.tree.map(np.array, model)
    losse.jax.update(model, jnp.ones((5, 3)), jnp.ones((5, 2)))
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(old, new)
