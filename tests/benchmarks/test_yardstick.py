"""The yardstick is Algorithm 2: it must compute what the algorithm says, not only cost as much."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from benchmarks.core import yardstick as ys  # noqa: E402

N_FEATURES, N_GRIDS, N_BINS, N_OUTPUTS, RIDGE = 4, 6, 5, 3, 1e-5


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def stream(grid_dim, n=150, seed=0):
    rng = np.random.default_rng(seed)
    projection = rng.normal(size=(N_FEATURES, N_GRIDS, grid_dim))
    x = np.clip(rng.normal(size=(n, N_FEATURES)), -3, 3)
    y = np.stack([np.sin(x @ rng.normal(size=N_FEATURES)) for _ in range(N_OUTPUTS)], axis=1)
    return projection, x, y


def dense_features(projection, x):
    """Every grid's outer product of one-dimensional soft bins, cell by cell."""
    _, n_grids, grid_dim = projection.shape
    rows = []
    for row in x:
        grids = []
        for g in range(n_grids):
            cells = np.ones(1)
            for axis in range(grid_dim):
                position = N_BINS / (1 + np.exp(-row @ projection[:, g, axis]))
                below = min(int(position), N_BINS - 1)
                bins = np.zeros(N_BINS + 1)
                bins[below], bins[below + 1] = 1 - (position - below), position - below
                cells = np.outer(cells, bins).ravel()
            grids.append(cells)
        rows.append(np.concatenate(grids))
    return np.array(rows)


def algorithm_2(features, y):
    """Lines 3 to 7 of the paper's Algorithm 2, the ridge added after division by the count."""
    d = features.shape[1]
    A, B, W = np.zeros((d, d)), np.zeros((d, y.shape[1])), np.zeros((d, y.shape[1]))
    for t, (phi, target) in enumerate(zip(features, y, strict=True), start=1):
        A += np.outer(phi, phi)
        B += np.outer(phi, target)
        s = np.flatnonzero(phi)
        rest = np.flatnonzero(phi == 0)
        rhs = B[s] - A[np.ix_(s, rest)] @ W[rest]
        W[s] = np.linalg.solve(A[np.ix_(s, s)] / t + RIDGE * np.eye(len(s)), rhs / t)
    return W


def learned(projection, x, y):
    model = ys.Yardstick(projection, N_OUTPUTS, n_bins=N_BINS, ridge=RIDGE, dtype="float64")
    model.learn(x, y)
    return model


@pytest.mark.parametrize("grid_dim", [1, 2, 3])
def test_agrees_with_the_algorithm(grid_dim):
    projection, x, y = stream(grid_dim)
    features = dense_features(projection, x)
    expected = features @ algorithm_2(features[:100], y[:100])
    actual = learned(projection, x[:100], y[:100]).predict(x)
    assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max()


def test_saturated_inputs_stay_in_their_own_grid():
    projection, x, _ = stream(2, n=1)
    shape = ys.Shape(N_GRIDS, N_BINS, 2, RIDGE)
    memory = ys.start(shape, projection, N_OUTPUTS, "float64")
    cells, values = ys.encode(shape, memory.projection, 1e6 * x)
    grid = np.arange(N_GRIDS).repeat(4)
    assert np.array_equal(np.asarray(cells)[0] // (N_BINS + 1) ** 2, grid)
    assert np.asarray(values).sum() == pytest.approx(N_GRIDS)


def test_memories_are_as_large_as_the_listing_s():
    projection, _, _ = stream(2, n=1)
    model = ys.Yardstick(projection, N_OUTPUTS, n_bins=N_BINS)
    d = N_GRIDS * (N_BINS + 2) ** 2
    assert model.memory.gram.shape == (d * d,)
    assert model.memory.weights.shape == model.memory.moment.shape == (d, N_OUTPUTS)
    assert model.memory.gram.dtype == np.float32


def test_agrees_with_the_sparse_solver():
    from losse import FTLRegressor, LosseEncoder

    _, x, y = stream(2)
    encoder = LosseEncoder(n_grids=N_GRIDS, n_bins=N_BINS, grid_dim=2, scaling=None, seed=0)
    model = FTLRegressor(encoder=encoder, solver="sparse", ridge=RIDGE).partial_fit(
        x[:100], y[:100]
    )
    expected = learned(model.encoder_.projection_, x[:100], y[:100]).predict(x)
    assert np.abs(model.predict(x) - expected).max() <= 1e-6 * np.abs(expected).max()
