"""Ctrl-C at any line of a call: the call has happened entirely, or not at all."""

import pickle
import signal
import sys
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse.world import LosseWorldModel
from tests.ftl.models import large_models

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
    return lines(call, line) >= line


def lines(call, line=None):
    """Make a call, with Ctrl-C at a line of losse if one is given; the number of lines it did."""
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
    return seen


def facts(model):
    """What must agree with each other, and what was predicted."""
    learner = model._learner
    total = learner._leader.total / learner.unit
    return (learner.n_samples, round(total, 6), *model.predict(X[:5]).ravel().round(9))


@pytest.mark.parametrize("places", [50, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_a_call_happens_entirely_or_not_at_all(name, places):
    model = FTLRegressor(**MODELS[name])
    for start in range(0, 120, 20):
        model.partial_fit(X[start : start + 20], Y[start : start + 20])
    frozen = pickle.dumps(model)
    before = facts(model)
    after = facts(model.partial_fit(X[120:145], Y[120:145]))
    all_lines = lines(partial(pickle.loads(frozen).partial_fit, X[120:145], Y[120:145]))
    outcomes = set()
    for line in (*range(1, all_lines, max(1, all_lines // places)), all_lines):
        model = pickle.loads(frozen)
        assert interrupted(partial(model.partial_fit, X[120:145], Y[120:145]), line)
        outcomes.add(facts(model))
    assert outcomes == {before, after}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("verb", ["learn", "unlearn", "merge"])
@pytest.mark.parametrize("solver", ["sparse", "dense", "exact", "auto"])
def test_every_verb_of_every_solver(solver, verb, large):
    """Also of models whose A is packed, where rows wait to enter it."""
    model = FTLRegressor(GRIDS, solver=solver, ridge=1e-4)
    with large_models(large):
        for start in range(0, 120, 20):
            model.partial_fit(X[start : start + 20], Y[start : start + 20])
        other = FTLRegressor(GRIDS, ridge=1e-4).fit(X[200:230], Y[200:230])
        calls = {
            "learn": lambda model: model.partial_fit(X[120:145], Y[120:145]),
            "unlearn": lambda model: model.unlearn(X[60:90], Y[60:90]),
            "merge": lambda model: model.merge(other),
        }
        frozen = pickle.dumps(model)
        before, after = facts(model), facts(calls[verb](pickle.loads(frozen)))
        outcomes, line = set(), 1
        while interrupted(partial(calls[verb], model := pickle.loads(frozen)), line):
            outcomes.add(facts(model))
            line += 29
        assert outcomes == {before, after}


@pytest.mark.parametrize("verb", ["save", "load"])
def test_files_are_whole_or_not_there(verb, tmp_path):
    path = tmp_path / "model.losse"
    model = FTLRegressor(GRIDS, ridge=1e-4).fit(X[:100], Y[:100])
    model.save(path, progress=False)
    old = path.read_bytes()
    model.partial_fit(X[100:], Y[100:])
    expected = facts(model)
    contents, line = set(), 1
    if verb == "save":
        while interrupted(partial(model.save, path, progress=False), line):
            contents.add(path.read_bytes() == old)
            assert [each.name for each in tmp_path.iterdir()] == [path.name]
            assert facts(model) == expected
            path.write_bytes(old)
            line += 5  # few lines come after the new file has taken the old one's place
        assert contents == {True, False}
    else:
        while interrupted(partial(FTLRegressor.load, path, progress=False), line):
            assert path.read_bytes() == old
            line += 41
        assert line > 100


def world():
    """A model that has learned sixty transitions."""
    model = LosseWorldModel(
        Box(-3, 3, (2,)),
        Discrete(2),
        termination="never",
        regressor=FTLRegressor(LosseEncoder(3, 3), ridge=1e-4),
    )
    update(model, slice(0, 60))
    return model


def update(model, part):
    n = len(X[part])
    model.update(X[part], np.arange(n) % 2, np.ones(n), 0.9 * X[part], np.zeros(n, bool))


@pytest.mark.parametrize("verb", ["update", "merge"])
def test_world_models_and_their_learners_agree(verb):
    other = world().like()
    update(other, slice(60, 100))
    counts, line = set(), 1
    while True:
        model = world()
        call = partial(update, model, slice(60, 100)) if verb == "update" else None
        if not interrupted(call or partial(model.merge, other), line):
            break
        counts.add((model.n_transitions, *(k.n_samples for k in model.learners.started.values())))
        line += 23
    assert counts == {(60, 30, 30), (100, 50, 50)}


def test_rivers_face():
    river = pytest.importorskip("losse.integrations.river")

    def fresh():
        model = river.LosseRegressor(n_grids=3, warm_up=16)
        for x, y in zip(X[:15], Y[:15], strict=True):
            model.learn_one(dict(enumerate(x)), y[0])
        return model

    counts, line = set(), 1
    while True:  # the sixteenth sample ends the warm-up
        model = fresh()
        call = partial(model.learn_one, dict(enumerate(X[15])), Y[15, 0])
        if not interrupted(call, line):
            break
        kept = model._model._kept
        counts.add((model._model._model.n_samples, kept is None or len(kept)))
        line += 13
    assert counts == {(15, 15), (16, True)}
