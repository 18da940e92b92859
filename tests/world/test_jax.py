"""`JaxWorldModel` is the Losse world model in JAX: same numbers, and the same verbs."""

from copy import deepcopy

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary

pytest.importorskip("jax")
import jax

from losse import FTLRegressor, LosseEncoder
from losse.envs.rewards import ControlCost
from losse.envs.terminations import TERMINATIONS
from losse.jax import from_regressor
from losse.world import JaxWorldModel, LosseWorldModel, PartlyKnown, make_world_model
from tests.world.worlds import (
    BOUNDED,
    FOUR,
    MIXED,
    PUSH,
    assert_identical,
    small,
    some,
    transitions,
)

REGRESSOR = small(ridge=1e-3)


def learned(space, actions, kind=JaxWorldModel, n=128, **options):
    model = kind(space, actions, regressor=REGRESSOR, warm_up=64, seed=2, **options)
    data = transitions(n, actions)
    for start in range(0, n, 32):
        model.update(*some(data, slice(start, start + 32)))
    return model


@pytest.fixture(scope="module")
def push():
    """A model of continuous actions, one of whose inputs has no bounds."""
    return learned(MIXED, PUSH)


def test_discrete_actions_have_the_numbers_of_the_host():
    """One learner for all; tests/dyna/test_device.py has one for each."""
    model = learned(BOUNDED, FOUR, per_action=False)
    require_same(model, learned(BOUNDED, FOUR, LosseWorldModel, per_action=False), FOUR)


def test_continuous_actions_have_the_numbers_of_the_host(push):
    host = learned(MIXED, PUSH, LosseWorldModel)
    require_same(push, host, PUSH)
    encoder = LosseEncoder(6, 5, 2, scaling=None, seed=2)
    states, actions, *_ = data = transitions(128, PUSH)
    X = host.inputs.matrix(states, actions)
    Y = np.column_stack([data[3] - states, data[2], data[4]])
    regressor = FTLRegressor(encoder, solver="sparse", ridge=1e-3).fit(X, Y)
    there, here = from_regressor(regressor), push.learners.started[0].model
    np.testing.assert_allclose(here.weights, there.weights, atol=1e-4)


def require_same(model, host, actions):
    """Steps of the model on the host and on the device are those of another, but for rounding."""
    obs, chosen, *_ = transitions(128, actions, seed=1)
    expected = host.step(obs, chosen)
    kind = np.int32 if actions is FOUR else np.float32
    pure = jax.jit(lambda dynamics, *rows: dynamics.step(*rows))
    for found in (
        model.step(obs, chosen),
        pure(model.dynamics, obs.astype(np.float32), chosen.astype(kind)),
    ):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(mine, float), theirs, rtol=1e-5, atol=2e-5)


def test_dynamics_stay_as_they_are(push):
    model = deepcopy(push)
    before = model.dynamics
    weights = np.array(before.weights)
    assert model.dynamics is before
    model.update(*transitions(32, PUSH, seed=3))
    assert np.array_equal(before.weights, weights)
    assert not np.array_equal(model.dynamics.weights, weights)
    empty = JaxWorldModel(BOUNDED, FOUR).dynamics
    assert not empty.weights.any()
    assert empty.weights.shape[1] == 4 * 4


def test_it_is_saved_and_loaded(push, tmp_path):
    model = deepcopy(push)
    model.save(tmp_path / "model")
    again = JaxWorldModel.load(tmp_path / "model")
    assert_identical(again, model)
    for one in (model, again):
        one.update(*transitions(32, PUSH, seed=3))
    assert_identical(again, model)


def test_what_was_learned_apart_adds_up(push):
    other = push.like()
    other.update(*transitions(32, PUSH, seed=3))
    both = deepcopy(push)
    both.merge(other)
    assert both.n_transitions == 160
    parts = [one.learners.started[0].model.memory.A for one in (push, other, both)]
    np.testing.assert_allclose(parts[0] + parts[1], parts[2], rtol=1e-6)


def test_rules_of_environments_are_compiled():
    space = Box(-np.inf, np.inf, (4,), np.float64)
    for env in ("CartPole-v1", "InvertedPendulum-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5"):
        rule = TERMINATIONS[env]
        assert JaxWorldModel(space, FOUR, termination=rule).termination is rule


def test_a_partly_known_reward_is_put_back_in_compiled_steps():
    model = JaxWorldModel(BOUNDED, PUSH, reward=PartlyKnown(ControlCost(0.5)))
    obs, actions, rewards, next_obs, terminated = transitions(400, PUSH)
    cost = ControlCost(0.5)(obs, actions, next_obs)
    model.update(obs, actions, rewards + cost, next_obs, terminated)
    slow = model.step(obs, actions)[1]
    fast = jax.jit(lambda dynamics, *given: dynamics.step(*given))(model.dynamics, obs, actions)[1]
    np.testing.assert_allclose(slow, fast, atol=1e-4)
    assert np.abs(slow - cost - rewards).mean() < 0.1 * np.abs(rewards).mean()


@pytest.mark.parametrize(
    ("spaces", "options", "message"),
    [
        ((BOUNDED, MultiBinary(2)), {}, r"action_space=MultiBinary\(2\) is not possible in Jax"),
        ((Discrete(3), FOUR), {}, r"observation_space=Discrete\(3\) is not possible in JaxWorld"),
        ((BOUNDED, FOUR), {"regressor": FTLRegressor()}, r"regressor.encoder=Adaptive.* LosseEnc"),
        ((BOUNDED, FOUR), {"regressor": small(ridge="auto")}, r"regressor.ridge='auto' has no"),
        ((BOUNDED, FOUR), {"regressor": small("exact")}, r"regressor.solver='exact' .*'sparse'"),
        ((BOUNDED, FOUR), {"regressor": small(discount=0.9)}, r"discount=0.9 has no functional"),
        ((BOUNDED, FOUR), {"reward": lambda o, a, n: np.cos(n[:, 0])}, r"reward=.*jax.numpy inst"),
        ((BOUNDED, FOUR), {"termination": lambda o, a, n: n > 0}, r"termination=.*shape \(2, 2\)"),
        ((BOUNDED, FOUR), {"n_grids": 3}, r"n_grids=3 is not an option of JaxWorldModel: use one"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(spaces, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_world_model("jax", *spaces, **options)


def test_a_refused_batch_changes_nothing(push):
    before = deepcopy(push)
    with pytest.raises(ValueError, match=r"changes by, 1e\+20: JaxWorldModel learns numbers up to"):
        push.update([[0.0, 0.0]], [[1.0]], [1e20], [[0.0, 0.0]], [False])
    with pytest.raises(NotImplementedError, match="JaxWorldModel does not know how sure it is"):
        push.step([[0.0, 0.0]], [[1.0]], return_std=True)
    assert_identical(push, before)
