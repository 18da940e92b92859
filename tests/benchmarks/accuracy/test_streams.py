"""The plan of `losse bench accuracy`, and its sequences of tasks: same rows, region by region."""

import numpy as np
import pytest

from benchmarks.accuracy.contenders.entries import ENTRIES
from benchmarks.accuracy.plan import SMALL, WHERE, checkpoints, plan
from benchmarks.accuracy.streams.stream import Stream, in_sequence


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_the_plan_has_everyone_everywhere(preset):
    runs = plan(preset, tuple(WHERE), WHERE["random"], tuple(ENTRIES), seeds=2)
    assert len({r.name for r in runs}) == len(runs)
    assert {r.method for r in runs if r.setting == "Ant-v5 random"} == set(ENTRIES) - {"rebuilt"}
    assert {r.seed for r in runs} == {0, 1}
    for run in runs:
        at = run.options["checkpoints"]
        assert at == sorted(set(at))
        assert at[-1] <= run.options["rows"]


def test_tasks_are_tested_when_one_ends():
    ends = {5000, 10_000, 15_000, 20_000}
    for contender in ("recommended", "rebuilt", "full-replay"):
        assert ends <= set(checkpoints("tasks", "Hopper-v5", contender, "full"))


def test_the_network_is_compared_where_it_is_promised():
    for environment in WHERE["random"]:
        assert {3000, 10_000} <= set(checkpoints("random", environment, "full-replay", "full"))
    assert checkpoints("random", "Hopper-v5", "full-replay", "full")[-1] == 50_000
    assert checkpoints("random", "Hopper-v5", "full-replay", "quick")[-1] == 3000


def test_small_environments_need_no_more():
    assert checkpoints("random", SMALL[0], "recommended", "full")[-1] == 10_000


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
