"""Ctrl-C at any line of a call: the call has happened entirely, or not at all."""

import signal
import sys
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse.world import LosseWorldModel

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(300, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
GRIDS = LosseEncoder(3, 3, scaling=(-3, 3)).fit(X)
MODELS = {
    "sparse": {"encoder": GRIDS, "solver": "sparse", "ridge": 1e-4},
    "exact": {"encoder": GRIDS, "solver": "exact", "ridge": 1e-4},
    "discount": {"encoder": GRIDS, "solver": "sparse", "ridge": 1e-4, "discount": 0.9},
    "auto": {"encoder": GRIDS, "ridge": "auto", "discount": 0.99},
    "built": {"encoder": AdaptiveEncoder(3, 2, n_stages=1, warm_up=140), "ridge": "auto"},
}


def interrupted(call, line):
    """Make a call in which Ctrl-C is pressed at a line of losse; whether it got that far."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if "/losse/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return seen >= line


def facts(model):
    """What must agree with each other, and what was predicted."""
    learner = model._learner
    total = learner._leader.total / learner.unit
    return (learner.n_samples, round(total, 6), *model.predict(X[:5]).ravel().round(9))


@pytest.mark.parametrize("name", MODELS)
def test_a_call_happens_entirely_or_not_at_all(name):
    def fresh():
        model = FTLRegressor(**MODELS[name])
        for start in range(0, 120, 20):
            model.partial_fit(X[start : start + 20], Y[start : start + 20])
        return model

    before = facts(fresh())
    after = facts(fresh().partial_fit(X[120:145], Y[120:145]))
    outcomes, line = set(), 1
    model = fresh()
    while interrupted(partial(model.partial_fit, X[120:145], Y[120:145]), line):
        outcomes.add(facts(model))
        line += 11
        model = fresh()
    assert outcomes == {before, after}


def test_world_models_and_their_learners_agree():
    def fresh():
        model = LosseWorldModel(Box(-3, 3, (2,)), Discrete(2), termination="never")
        update(model, slice(0, 60))
        return model

    def update(model, part):
        n = len(X[part])
        model.update(X[part], np.arange(n) % 2, np.ones(n), 0.9 * X[part], np.zeros(n, bool))

    counts, line, model = set(), 1, fresh()
    while interrupted(partial(update, model, slice(60, 100)), line):
        counts.add((model.n_transitions, *(k.n_samples for k in model.learners.started.values())))
        line += 23
        model = fresh()
    assert counts == {(60, 30, 30), (100, 50, 50)}
