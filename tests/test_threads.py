"""Linear algebra of small matrices has one thread, and as many as before afterwards."""

import threading

import numpy as np
import pytest

from losse import FTLRegressor, threads
from losse.encoders import AdaptiveEncoder
from losse.threads import LARGE, one_thread


class Library:
    """A library of linear algebra that remembers all numbers of threads that it had."""

    def __init__(self, number):
        self.had = [number]

    def get_num_threads(self):
        return self.had[-1]

    def set_num_threads(self, number):
        self.had.append(number)


@pytest.fixture
def libraries(monkeypatch):
    both = [Library(8), Library(4)]
    monkeypatch.setattr(threads, "_libraries", lambda: both)
    return both


def test_blocks_within_blocks_change_nothing(libraries):
    with one_thread():
        with one_thread():
            pass
        assert [library.had for library in libraries] == [[8, 1], [4, 1]]
    assert [library.had for library in libraries] == [[8, 1, 8], [4, 1, 4]]


def test_an_error_brings_all_threads_back(libraries):
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert [library.had[-1] for library in libraries] == [8, 4]


def test_large_products_keep_their_threads(libraries):
    with one_thread(LARGE):
        assert [library.had for library in libraries] == [[8], [4]]


def test_the_last_of_two_threads_brings_all_back(libraries):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_thread():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert inside.wait(60)
    assert libraries[0].had == [8, 1]
    leave.set()
    thread.join()
    assert libraries[0].had == [8, 1, 8]


def rows(n):
    X = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    return X, np.sin(X)


@pytest.mark.parametrize(
    "compute",
    [
        lambda model: model.partial_fit(*rows(5)),
        lambda model: model.predict(rows(5)[0], return_std=True),
        lambda _: AdaptiveEncoder().fit(*rows(100)),
    ],
    ids=["learning", "deviations", "an encoder"],
)
def test_models_compute_with_one(libraries, compute):
    model = FTLRegressor().fit(*rows(100))
    for library in libraries:
        library.had = [8]
    compute(model)
    assert {tuple(library.had[:2]) for library in libraries} == {(8, 1)}
    assert {library.had[-1] for library in libraries} == {8}
