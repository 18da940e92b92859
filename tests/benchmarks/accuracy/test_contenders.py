"""Everyone who competes: learns from batches, forgets nothing it should keep, states its size."""

import numpy as np
import pytest

from benchmarks.accuracy.contenders.contender import Doubting, Kept
from benchmarks.accuracy.contenders.entries import ENTRIES, NEEDS, entry
from benchmarks.accuracy.streams.stream import Stream

N = 400


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(1.0, 2.0, size=(N, 2)), rng.normal(1.0, 2.0, size=(200, 2))

    def target(X):
        return np.column_stack([X[:, 0] - X[:, 1], 50 + np.sin(X[:, 0]), np.full(len(X), 3.0)])

    tasks = (np.zeros(n, np.int64) for n in (N, 200))
    return Stream(X, target(X), X_test, target(X_test), *tasks)


@pytest.mark.parametrize("name", ENTRIES)
def test_learns(name, stream):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    contender = entry(name, stream, seed=0)
    n = 150 if name.startswith("river-") else N
    for start in range(0, n, 25):
        contender.learn(stream.X[start : start + 25], stream.Y[start : start + 25])
        if start == 0:
            assert np.isfinite(contender.predict(stream.X_test)).all()
    contender.refresh()
    predicted = contender.predict(stream.X_test)
    assert predicted.shape == stream.Y_test.shape
    error = np.mean((predicted - stream.Y_test) ** 2, axis=0)
    # One has converged, and one takes small steps.
    share = {"full-replay": 0.02, "vowpal-wabbit": 0.7}.get(name, 0.4)
    assert error[0] < share * stream.Y_test[:, 0].var()
    assert np.abs(predicted[:, 1] - 50).max() < 20
    assert contender.nbytes > 1000
    if isinstance(contender, Doubting):
        varies = stream.Y.std(axis=0) > 0  # of what never varies, a model is sure
        low, high = contender.predict_interval(stream.X_test, 0.9)
        assert (low < high)[:, varies].all()


@pytest.mark.parametrize("name", ["adaptive", "knn", "rebuilt"])
def test_who_keeps_rows_states_their_size(name, stream):
    contender = entry(name, stream, seed=0)
    contender.learn(stream.X, stream.Y)
    assert contender.nbytes >= stream.X.nbytes + stream.Y.nbytes


def test_the_online_network_has_no_memory(stream):
    pytest.importorskip("jax")
    contender = entry("nn-online", stream, seed=0)
    before = contender.nbytes
    for start in range(0, N, 200):
        contender.learn(stream.X[start : start + 200], stream.Y[start : start + 200])
    assert contender.nbytes == before


def test_kept_rows_are_all_rows():
    rows = np.arange(140.0).reshape(70, 2)
    kept = Kept()
    assert kept.nbytes == 0
    for start, stop in ((0, 1), (1, 30), (30, 31), (31, 70)):
        kept.add(rows[start:stop], rows[start:stop, :1])
    assert len(kept) == 70
    assert np.array_equal(kept.X, rows)
    assert np.array_equal(kept.rows()[1], rows[:, :1])
