"""Functions of `losse.jax` inside jit, vmap, scan, grad and shard_map."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import losse.jax
from losse.jax import native
from tests.jax import rows


def test_many_models_learn_side_by_side():
    X, Y = rows.make()
    X, Y = X[:60].reshape(3, 20, 3), Y[:60].reshape(3, 20, 3)
    ridges = jnp.array([1e-3, 1e-2, 1e-1])

    def learn(key, ridge, x, y):
        model = losse.jax.init(key, 3, 3, n_grids=4, n_bins=5, ridge=ridge)
        return losse.jax.update(model, x, y)

    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.vmap(learn)(keys, ridges, X, Y)
    for k in range(3):
        alone = learn(keys[k], ridges[k], X[k], Y[k])
        np.testing.assert_allclose(together.weights[k], alone.weights, atol=1e-4)


@pytest.mark.usefixtures("small_squares")
def test_packed_models_learn_side_by_side():
    X, Y = rows.make()
    model = losse.jax.init(jax.random.key(0), 3, 3, n_grids=4, n_bins=5, ridge=1e-2)
    together = jax.vmap(lambda x, y: losse.jax.update(model, x, y))(X[:6, None], Y[:6, None])
    alone = losse.jax.update(model, X[5], Y[5])
    np.testing.assert_allclose(together.weights[5], alone.weights, atol=1e-5)
    np.testing.assert_allclose(together.memory.A[5], alone.memory.A, atol=1e-6)


def test_a_vmap_over_inputs_is_a_batch():
    _, model = rows.pair()
    X, _ = rows.make()
    mapped = jax.vmap(lambda x: losse.jax.predict(model, x))(X)
    np.testing.assert_allclose(mapped, losse.jax.predict(model, X), atol=1e-6)
    grid = losse.jax.predict(model, X.reshape(4, 40, 3))
    np.testing.assert_allclose(grid.reshape(-1, 3), mapped, atol=1e-6)


def test_a_loop_learns_in_place():
    """Neither the scan over the rows of a batch nor one around `update` copies the memory A."""
    model = losse.jax.init(jax.random.key(0), 3, 3, n_grids=16, n_bins=5)
    X, Y = rows.make()

    def learn(model, row):
        before = losse.jax.predict(model, row[0])
        return losse.jax.update(model, *row), before

    def loop(model, X, Y):
        return jax.lax.scan(learn, model, (X, Y))

    for function in (loop, losse.jax.update):
        compiled = jax.jit(function, donate_argnums=0).lower(model, X, Y).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < model.memory.A.nbytes / 2


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("linear", [False, True])
def test_predictions_can_be_differentiated(linear):
    regressor, model = rows.pair(linear=linear)
    x, direction = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])
    slope = jax.jacobian(lambda x: losse.jax.predict(model, x))(x) @ direction
    near = regressor.predict([x + 1e-6 * direction, x - 1e-6 * direction])
    np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, rtol=1e-6)

    def first_output(weights):
        return losse.jax.predict(model.replace(weights=weights), x)[0]

    indices, values = losse.jax.encode(model, x)
    gradient = jax.grad(first_output)(model.weights)
    np.testing.assert_allclose(gradient[indices, 0], values, atol=1e-14)
    assert int(jnp.count_nonzero(gradient)) == int(jnp.count_nonzero(values))


def test_shards_on_several_devices_add_up():
    code = """
import jax, jax.numpy as jnp, numpy as np, losse.jax
from jax.sharding import Mesh, PartitionSpec as P
X = jax.random.normal(jax.random.key(1), (80, 2))
empty = losse.jax.init(jax.random.key(0), 2, 2, n_grids=3, n_bins=4, ridge=1e-3)
def learn(x, y):
    return losse.jax.merge_across(losse.jax.update(empty, x, y), "shards")
mesh = Mesh(np.array(jax.devices()), "shards")
learn = jax.shard_map(learn, mesh=mesh, in_specs=P("shards"), out_specs=P())
merged = jax.jit(learn)(X, jnp.sin(X))
whole = losse.jax.leader(losse.jax.accumulate(empty, X, jnp.sin(X)))
print(len(jax.devices()), bool(jnp.allclose(merged.weights, whole.weights, atol=1e-3)))
"""
    devices = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'"
    command = [sys.executable, "-c", devices + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "4 True\n", done.stderr


def test_kernels_and_xla_learn_the_same(monkeypatch):
    X, Y = rows.make()
    weights = np.linspace(0, 2, len(X))
    model = losse.jax.init(jax.random.key(0), 3, 3, n_grids=4, n_bins=5, ridge=1e-3)

    def learned():
        jax.clear_caches()
        batch = losse.jax.update(model, X, Y, weights)
        loop = jax.lax.scan(lambda m, row: (losse.jax.update(m, *row), None), model, (X, Y))[0]
        many = jax.vmap(lambda x, y: losse.jax.update(model, x, y))(X[:4, None], Y[:4, None])
        return batch, loop, many

    assert native.target("float32")  # of the version that the extra installs
    ours = learned()
    monkeypatch.setattr(native, "target", lambda dtype: None)
    theirs = learned()
    jax.clear_caches()
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert not np.array_equal(ours[0].weights, theirs[0].weights)  # they are two ways


def test_the_given_model_stays_as_it_is():
    X, Y = rows.make()
    model = losse.jax.init(jax.random.key(0), 3, 3, n_grids=4, n_bins=5)
    learned = losse.jax.update(model, X, Y)
    again = losse.jax.update(learned, X, Y)
    assert not np.any(model.memory.A)
    assert float(learned.memory.total) == len(X)
    np.testing.assert_allclose(again.memory.A, 2 * learned.memory.A, rtol=1e-5)


def test_kernels_are_called_only_with_frames_that_they_know():
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    assert native.fits(header)
    assert not native.fits(header.replace("void* data;", "int64_t flags; void* data;"))
    assert not native.fits(header.replace("API_MAJOR 0", "API_MAJOR 1"))
    assert not native.fits("")


EXAMPLE = Path(__file__).parents[2] / "examples" / "jax_loop.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("jax_loop", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pendulums_stand_up(example):
    settings = example.Settings(copies=16, steps=100)
    model, rewards = jax.jit(example.run, static_argnums=0)(settings, jax.random.key(0))
    assert int(model.memory.n_samples) == 1600
    assert float(rewards[-10:].mean()) > -0.5 > -3 > float(rewards[:20].mean())
