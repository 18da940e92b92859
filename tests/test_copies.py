"""Copies and pickles that are made while another thread learns are those of one moment."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse import FTLRegressor, LosseEncoder
from losse.world import LosseWorldModel

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(40, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
BATCHES = [slice(start, start + 4) for start in range(0, 40, 4)] * 12


class Regressor:
    """`FTLRegressor`, whose weights, count and sums must be those of the same rows."""

    def __init__(self):
        encoder = LosseEncoder(3, 4, scaling=(-3, 3))
        self.model = FTLRegressor(encoder, solver="sparse", ridge=1e-4, discount=0.99)

    def learn(self, part):
        self.model.partial_fit(X[part], Y[part])

    @staticmethod
    def facts(model):
        learner = model._learner
        return learner.n_samples, learner._leader.total, learner.unit, model.weights_.tobytes()


class World:
    """`LosseWorldModel`, whose count must be that of its learners."""

    def __init__(self):
        encoder = LosseEncoder(3, 4)
        regressor = FTLRegressor(encoder, solver="sparse", ridge=1e-4)
        self.model = LosseWorldModel(
            Box(-3, 3, (2,)), Discrete(2), termination="never", regressor=regressor
        )

    def learn(self, part):
        n = len(X[part])
        self.model.update(X[part], np.arange(n) % 2, np.ones(n), 0.9 * X[part], np.zeros(n, bool))

    @staticmethod
    def facts(model):
        learners = model.learners.started.values()
        counts = [learner.n_samples for learner in learners]
        return model.n_transitions, *counts, *(one.weights.tobytes() for one in learners)


class River:
    """The regressor for River."""

    def __init__(self):
        river = pytest.importorskip("losse.integrations.river")
        self.model = river.LosseRegressor(n_grids=3, warm_up=8)

    def learn(self, part):
        for x, y in zip(X[part], Y[part], strict=True):
            self.model.learn_one(dict(enumerate(x)), y[0])

    @staticmethod
    def facts(model):
        learner = model._model._model
        return learner.n_samples, learner._leader.total, learner.weights.tobytes()


@pytest.mark.parametrize("kind", [Regressor, World, River])
def test_a_copy_is_that_of_one_moment(kind):
    twin, moments = kind(), set()
    for part in BATCHES:
        rows = range(part.start, part.stop)
        for row in rows if kind is River else [None]:  # there, a call is one row
            twin.learn(part if row is None else slice(row, row + 1))
            moments.add(kind.facts(twin.model))
    busy = kind()
    busy.learn(BATCHES[0])
    learned, problems, counts = threading.Event(), [], [0, 0]
    ways = (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)))

    def take(k):
        try:
            while not learned.is_set() or not counts[k]:
                assert kind.facts(ways[k](busy.model)) in moments
                counts[k] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=take, args=(k,)) for k in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for part in BATCHES[1:]:
            busy.learn(part)
    finally:
        learned.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not problems
    assert min(counts) > 0
    assert kind.facts(busy.model) == kind.facts(twin.model)


def test_copies_share_nothing():
    model = FTLRegressor(LosseEncoder(3, 4), ridge=1e-4).fit(X, Y)
    before = model.predict(X)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.partial_fit(X, -Y)
        np.testing.assert_array_equal(model.predict(X), before)


def test_threads_that_begin_a_model_lose_no_row():
    for _ in range(20):
        model = FTLRegressor(LosseEncoder(2, 2, scaling=(-3, 3)), ridge=1e-4)
        barrier = threading.Barrier(4)

        def learn(k, model=model, barrier=barrier):
            barrier.wait()
            model.partial_fit(X[k::4], Y[k::4])

        threads = [threading.Thread(target=learn, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.n_samples_seen_ == len(X)
