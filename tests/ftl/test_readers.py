"""Readers in other threads: they never wait for a change, and never see half of one."""

import threading
import time

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse.ftl.learner import Learner
from losse.world import LosseWorldModel
from tests.ftl.models import X, Y

PROBE = X[:3]


@pytest.fixture
def held(monkeypatch):
    """Changes that stop in the middle until they are let go."""
    begun, go = threading.Event(), threading.Event()
    real = Learner._take_in

    def slow(self, rows):
        begun.set()
        assert go.wait(30)
        return real(self, rows)

    def hold():
        monkeypatch.setattr(Learner, "_take_in", slow)

    return hold, begun, go


def test_predictions_do_not_wait_for_an_update(held):
    hold, begun, go = held
    model = FTLRegressor(LosseEncoder(5, 5), ridge=1e-3).fit(X[:100], Y[:100])
    before = model.predict(PROBE)
    hold()
    updates = threading.Thread(target=model.partial_fit, args=(X[100:], Y[100:]))
    updates.start()
    assert begun.wait(30)
    np.testing.assert_array_equal(model.predict(PROBE), before)
    assert updates.is_alive()
    go.set()
    updates.join()
    assert (model.predict(PROBE) != before).any()
    assert model.__dict__["_published"] is None  # nothing is kept twice


def test_world_models_do_not_wait_either(held):
    hold, begun, go = held
    model = LosseWorldModel(Box(-3, 3, (2,)), Discrete(2), termination="never")

    def update(part):
        n = len(X[part])
        rows = X[part][:, :2]
        model.update(rows, np.arange(n) % 2, np.ones(n), 0.9 * rows, np.zeros(n, bool))

    update(slice(0, 60))
    states, actions = X[:4, :2], np.arange(4) % 2
    before = model.step(states, actions)[0]
    hold()
    updates = threading.Thread(target=update, args=(slice(60, 120),))
    updates.start()
    assert begun.wait(30)
    np.testing.assert_array_equal(model.step(states, actions)[0], before)
    assert updates.is_alive()
    go.set()
    updates.join()
    assert model.n_transitions == 120


@pytest.mark.parametrize(
    "encoder", [LosseEncoder(5, 5), AdaptiveEncoder(5, 3, n_stages=1, warm_up=120)]
)
def test_every_prediction_is_that_of_a_state_between_updates(encoder):
    batches = [slice(k, k + 4) for k in range(4, 240, 4)]

    def first():
        return FTLRegressor(encoder, ridge=1e-3).partial_fit(X[:4], Y[:4])

    alone = first()
    states = [alone.predict(PROBE)]
    for rows in batches:
        states.append(alone.partial_fit(X[rows], Y[rows]).predict(PROBE))

    model, seen, over = first(), [], threading.Event()

    def look():
        while not over.is_set():
            seen.append(model.predict(PROBE))
            time.sleep(1e-4)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for rows in batches:
        model.partial_fit(X[rows], Y[rows])
    over.set()
    for reader in readers:
        reader.join()
    known = {state.tobytes() for state in states}
    assert {each.tobytes() for each in seen} <= known
    assert model.predict(PROBE).tobytes() == states[-1].tobytes()


def test_without_other_threads_nothing_is_copied(monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(FTLRegressor, "_snapshot", None)  # which cannot be called
    FTLRegressor(LosseEncoder(5, 5), ridge=1e-3).fit(X, Y).partial_fit(X, Y)
