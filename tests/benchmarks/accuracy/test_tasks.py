"""A sequence of tasks: the same rows, region by region."""

import numpy as np
import pytest
from benchmarks.accuracy.streams.stream import Stream, in_sequence


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(400, 3)), rng.normal(size=(200, 3))
    no_task = (np.zeros(n, np.int64) for n in (400, 200))
    return Stream(X, X.sum(axis=1, keepdims=True), X_test, X_test[:, :1], *no_task)


def test_the_same_rows(stream):
    tasks = in_sequence(stream)
    assert np.array_equal(np.sort(tasks.X, axis=0), np.sort(stream.X, axis=0))
    assert np.allclose(tasks.Y[:, 0], tasks.X.sum(axis=1))
    assert np.array_equal(tasks.X_test, stream.X_test)


def test_regions_of_equal_size_one_after_the_other(stream):
    tasks = in_sequence(stream, cuts=2)
    assert tasks.n_tasks == 4
    assert np.array_equal(tasks.task, np.repeat(np.arange(4), 100))


def test_regions_do_not_overlap(stream):
    """A row of the test is in the region that a learned row at the same place would be in."""
    tasks = in_sequence(stream._replace(X_test=stream.X, Y_test=stream.Y, task_test=stream.task))
    where = {x.tobytes(): task for x, task in zip(tasks.X, tasks.task, strict=True)}
    assert [where[x.tobytes()] for x in tasks.X_test] == tasks.task_test.tolist()


def test_a_constant_input_cuts_nothing(stream):
    X = stream.X.copy()
    X[:, 0] = 7.0
    assert np.bincount(in_sequence(stream._replace(X=X)).task).tolist() == [100] * 4
