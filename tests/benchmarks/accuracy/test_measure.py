"""What is measured of a contender, with contenders whose errors are known."""

import numpy as np
import pytest

from benchmarks.accuracy.measure import Error, largest_rises, measure, sample_of_tests
from benchmarks.accuracy.streams.stream import Stream


class Echo:
    """Predicts the mean of what it was given last; refreshing makes it perfect, if it may."""

    nbytes = 12

    def __init__(self, can_refresh=False):
        self.batches, self.refreshed, self._can_refresh = [], 0, can_refresh
        self._offset = 0.0

    def learn(self, X, Y):
        self.batches.append(len(X))
        self._offset = 1.0

    def refresh(self):
        self.refreshed += 1
        self._offset = 0.0 if self._can_refresh else self._offset

    def predict(self, X):
        return X + self._offset


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(130, 2)), rng.normal(size=(40, 2))
    return Stream(X, X, X_test, X_test, np.repeat([0, 1], 65), np.repeat([0, 1], 20))


def test_errors_are_divided_by_the_variance_of_the_test(stream):
    found = measure(Echo(), stream, [50, 110])
    expected = np.mean(1 / stream.Y_test.var(axis=0))
    assert found.samples == [50, 110]
    assert found.test == pytest.approx([expected, expected])
    assert found.prequential == pytest.approx([expected, expected])
    assert found.nbytes == [12, 12]
    assert found.calibration == {}


def test_calibration_is_the_share_of_targets_within_bounds(stream):
    class Sure(Echo):
        def predict_interval(self, X, coverage):
            return X - 1.0, X + np.where(X > 0, coverage - 0.85, 1.0)

    found = measure(Sure(), stream, [50])
    below = float(np.mean(stream.X_test <= 0))
    assert found.calibration == {"0.8": pytest.approx(below), "0.9": 1.0, "0.95": 1.0}


def test_batches_end_at_checkpoints(stream):
    contender = Echo()
    measure(contender, stream, [60, 110])
    assert contender.batches == [25, 25, 10, 25, 25]
    assert contender.refreshed == 2


def test_the_test_is_after_a_refresh(stream):
    found = measure(Echo(can_refresh=True), stream, [50])
    assert found.test == [0.0]
    assert found.prequential[0] > 0


def test_parts_have_errors_of_their_own(stream):
    parts = {
        "first": lambda X, Y: Y[:, :1],
        "beyond": lambda X, Y: (X + Y > 1.0).astype(float)[:, 1:],
        "constant": lambda X, Y: np.ones((len(X), 1)),
    }
    found = measure(Echo(), stream, [50, 110], parts)
    beyond = 2 * stream.X_test[:, 1:] > 1.0
    wrong = beyond != (2 * stream.X_test[:, 1:] + 1.0 > 1.0)
    assert list(found.parts) == ["first", "beyond"]
    assert found.parts["first"] == pytest.approx([1 / stream.Y_test[:, 0].var()] * 2)
    assert found.parts["beyond"] == pytest.approx([wrong.mean() / beyond.var()] * 2)
    assert measure(Echo(), stream, [50]).parts == {}


def test_each_task_is_tested(stream):
    found = measure(Echo(), stream, [65, 130])
    assert [n for n, _ in found.tasks] == [65, 130]
    for (_, each), whole in zip(found.tasks, found.test, strict=True):
        assert np.mean(each) == pytest.approx(whole)


def test_constant_outputs_do_not_count():
    targets = np.column_stack([np.arange(4.0), np.full(4, 1e3), np.full(4, 0.1) + 1e-17])
    assert Error(targets)(np.full((4, 3), targets[:, 0].std())) == pytest.approx(1.0)


def test_nothing_is_forgotten_where_errors_fall():
    curve = [(10, [0.3, 0.9]), (15, [0.3, 0.5]), (20, [0.2, 0.4])]
    assert largest_rises(curve, ends=[10, 20]) == (0.0, 0.0)


def test_a_task_that_is_not_finished_may_rise():
    curve = [(10, [0.3, 0.2]), (15, [0.3, 0.9]), (20, [0.3, 0.4])]
    assert largest_rises(curve, ends=[10, 20]) == (0.0, 0.0)


def test_fewer_tests_are_some_of_them(stream):
    fewer = sample_of_tests(stream, 7)
    assert fewer.X_test.shape == (7, 2)
    assert {x.tobytes() for x in fewer.X_test} <= {x.tobytes() for x in stream.X_test}
    assert sample_of_tests(stream, None) is stream
