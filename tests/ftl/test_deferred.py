"""Rows that enter a matrix later: the sums are the same at all times."""

import numpy as np
import pytest

from losse import FTLRegressor, LosseEncoder
from losse._kernels.simd import aligned
from losse.encoders.features import DenseFeatures, SparseFeatures
from losse.ftl.deferred import MANY, Deferred
from losse.ftl.memories.listed_rows import ListedRows
from losse.ftl.memories.packed import PackedMemory
from losse.ftl.memories.square import SquareMemory
from losse.work import finished

RNG = np.random.default_rng(0)
D = 200
PHI = RNG.normal(size=(1200, D))
Y = RNG.normal(size=(1200, 8))


def memory(rows, size, dtype="float64"):
    """Sums of rows that come in batches and may wait."""
    made = SquareMemory(D, 8, dtype)
    for start in range(0, rows, size):
        part = slice(start, min(start + size, rows))
        weights = np.linspace(0.5, 2, part.stop - part.start)
        made.add_soon(DenseFeatures(PHI[part]), Y[part], weights)
    return made


@pytest.mark.parametrize("size", [1, 7, 100, 300])
@pytest.mark.parametrize("rows", [3, 255, 256, 300, 600, 1200])
def test_everything_that_reads_the_sums_counts_rows_that_wait(size, rows, monkeypatch):
    monkeypatch.setattr("losse.ftl.memories.square._LEAST", 1)
    made = memory(rows, size)
    weights = np.concatenate(
        [np.linspace(0.5, 2, min(size, rows - start)) for start in range(0, rows, size)]
    )
    A = (PHI[:rows] * weights[:, None]).T @ PHI[:rows]
    W = RNG.normal(size=(D, 8))
    np.testing.assert_allclose(made.times(W), A @ W, atol=1e-9)
    np.testing.assert_allclose(made.residual(W, 0.3), made.B - A @ W - 0.3 * W, atol=1e-9)
    np.testing.assert_allclose(made.diagonal(), A.diagonal(), atol=1e-9)
    other = SquareMemory(D, 8, "float64")
    other.absorb(made, 2.0, None)
    np.testing.assert_allclose(other.square(), 2 * A, atol=1e-9)
    if size <= MANY:
        assert made.waiting == rows or made.waiting < 2 * MANY
    np.testing.assert_allclose(made.square(), A, atol=1e-9)
    assert made.waiting == 0
    assert (made.A == made.A.T).all()


def test_a_row_changes_only_a_few_columns():
    sums = Deferred(np.zeros((D, D)))
    changed = []
    for row in PHI:
        before = np.triu(sums.matrix)
        sums.make_room(1)
        sums.append(row[None])
        changed.append((np.triu(sums.matrix) != before).any(axis=1).sum())
    assert 0 < max(changed) <= 2 * D // MANY + 1
    rows = sums.waiting
    np.testing.assert_allclose(sums.matrix + rows.T @ rows, PHI.T @ PHI, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_models_with_rows_that_wait_are_those_without(dtype, monkeypatch, tmp_path):
    X = RNG.uniform(-3, 3, size=(700, 3))
    y = np.sin(X)
    encoder = LosseEncoder(6, 5, 2, scaling=(-3, 3)).fit(X)

    def learned():
        model = FTLRegressor(encoder, solver="exact", ridge=1e-3, dtype=dtype)
        for start in range(0, 700, 10):
            model.partial_fit(X[start : start + 10], y[start : start + 10])
        return model

    at_once = learned()
    monkeypatch.setattr("losse.ftl.memories.square._LEAST", 1)
    waiting = learned()
    tolerance = 1e-8 if dtype == "float64" else 1e-2
    np.testing.assert_allclose(waiting.predict(X), at_once.predict(X), atol=tolerance)
    assert waiting._learner._leader._solver.memory.waiting > 0
    waiting.save(tmp_path / "model", progress=False)
    loaded = FTLRegressor.load(tmp_path / "model", progress=False)
    for each in (waiting, loaded):
        each.partial_fit(X[:300], y[:300]).unlearn(X[:20], y[:20])
    assert (waiting.predict(X) == loaded.predict(X)).all()
    both = FTLRegressor(encoder, ridge=1e-3, dtype=dtype).fit(X[:50], y[:50]).merge(waiting)
    assert both.n_samples_seen_ == waiting.n_samples_seen_ + 50


@pytest.mark.parametrize("size", [1, 7, 25, 32, 64])
def test_batches_never_wait_for_all_rows_to_enter(size):
    """A batch of up to half of those that enter together finds room, with its share alone."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20 * MANY, 30))
    sums = Deferred(np.zeros((30, 30)))
    for first in range(0, len(rows), size):
        batch = rows[first : first + size]
        assert not sums.make_room(len(batch))
        sums.append(batch)
    T = sums.waiting
    np.testing.assert_allclose(sums.matrix + T.T @ T, rows.T @ rows, rtol=1e-10)


@pytest.mark.parametrize("size", [1, 40, 499, 1200])
def test_packed_sums_are_the_same_while_rows_enter(size):
    X = RNG.uniform(-3, 3, size=(1200, 3))
    encoder = LosseEncoder(6, 4, 2, scaling=(-3, 3)).fit(X)
    features = encoder.encode(X)
    made = PackedMemory(6, 25, 24, 8, "float64")
    V = aligned((made.dimension, 8))
    V[:] = RNG.normal(size=V.shape)
    under_way = 0
    for start in range(0, 1200, size):
        part = slice(start, start + size)
        made.add_products(features[part], np.ones(len(features[part])))
        Phi = features[: part.stop].dense()
        np.testing.assert_allclose(made.times(V), Phi.T @ (Phi @ V), atol=1e-9)
        state = made.waiting_state()
        under_way += "share" in state and 0 < state["share"] < 1
    assert under_way > 5 or size >= 499
    Phi = features.dense()
    np.testing.assert_allclose(made.square(), Phi.T @ Phi, atol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 60, 128])
@pytest.mark.parametrize("terms", [False, True])
def test_products_of_active_cells_enter_as_if_at_once(size, terms):
    X = RNG.uniform(-3, 3, size=(1500, 3))
    features = LosseEncoder(30, 3, 2, scaling=(-3, 3), linear=terms).fit(X).encode(X)
    sums = ListedRows(np.zeros((features.dimension,) * 2), features)
    parts = [slice(first, min(first + size, 1500)) for first in range(0, 1500, size)]
    under_way = 0
    for part in parts:
        assert not sums.make_room(part.stop - part.start)
        sums.take(features[part])
        under_way += 0 < np.count_nonzero(sums.waiting[0]) < features.values.shape[1]
    assert under_way > (2 if size < 128 else 0)
    T, Phi = sums.waiting, features.dense()
    np.testing.assert_allclose(sums.matrix + T.T @ T, Phi.T @ Phi, atol=1e-9)
    sums.enter()
    assert (sums.matrix == sums.matrix.T).all()


def test_products_of_many_rows_are_the_same_to_the_last_bit_however_they_come():
    X = RNG.uniform(-3, 3, size=(700, 3))
    features = LosseEncoder(30, 4, 2, scaling=(-3, 3)).fit(X).encode(X)
    weights = RNG.uniform(0.5, 2, size=700)
    targets = np.zeros((700, 8))
    row_by_row, gathered = (SquareMemory(features.dimension, 8, "float64") for _ in range(2))
    for k in range(700):
        one = slice(k, k + 1)
        row_by_row.add(features[one], targets[one], weights[one])
    finished(gathered.adding(features, targets, weights, scattered=False))
    assert (row_by_row.A == gathered.A).all()


def test_cells_that_are_in_no_order_have_no_bands():
    indices = np.array([[5, 40], [40, 5]], dtype=np.int32).repeat(16, axis=1)
    assert SparseFeatures(indices, np.ones(indices.shape), 50).bands() is None
    assert SparseFeatures(indices[:1], np.ones((1, 32)), 50).bands().tolist() == [0, 40, 50]
