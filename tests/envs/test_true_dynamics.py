"""The rules of known environments are those of the environments, and starts can be anywhere."""

import gymnasium
import numpy as np
import pytest

from losse.envs import ExploringStarts
from losse.envs.gridworld_dynamics import Layout, at_goal, in_barrier
from losse.envs.rewards import REWARDS, WEIGHT, WEIGHTS, control_cost, known_reward
from losse.envs.terminations import NEVER, TERMINATIONS, known_termination
from losse.envs.true_dynamics import KNOWN, true_dynamics

EXACT = {"losse/Gridworld-v0": {"noise": 0.0}}
"""Options without noise."""


def drawn(truth, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([truth.draw(rng) for _ in range(n)])


def stepped(env, truth, states, actions):
    """What the environment itself does, row by row."""
    rows = []
    for state, action in zip(states, actions, strict=True):
        env.reset()
        truth.put(state)
        obs, reward, terminated, _, _ = env.step(action)
        rows.append((obs, reward, terminated))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def near_the_end(env):
    """States from which a step may end an episode."""
    if env.spec.id == "MountainCar-v0":
        return np.array([[0.48, 0.05], [0.49, 0.01], [0.47, 0.0], [-1.19, -0.05], [-1.2, 0.0]])
    if env.spec.id == "Acrobot-v1":
        return np.array([[1.7, 0.4, 2.0, 1.0], [-1.8, -0.1, -3.0, 0.0], [0.1, 0.0, 0.0, 0.0]])
    return np.array([[0.96, 0.92], [0.92, 0.96], [0.48, 0.7], [0.97, 0.01]])


OTHER = {"reward": "sparse", "gap": (0.1, 0.2), "step_size": 0.08}


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in KNOWN), ("losse/Gridworld-v0", OTHER)],
)
def test_all_rows_at_once_are_the_environments_own_steps(name, options):
    env = gymnasium.make(name, **EXACT.get(name, {}), **options)
    truth = true_dynamics(env)
    states = np.concatenate([drawn(truth, 300), near_the_end(env)])
    n_actions = int(env.action_space.n)
    actions = np.tile(np.arange(n_actions), len(states))
    states = np.repeat(states, n_actions, axis=0)
    before = states.copy()
    made = truth.step(states, actions, np.random.default_rng(0))
    obs, rewards, terminated = stepped(env, truth, states, actions)
    np.testing.assert_allclose(truth.observe(made.states), obs, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(made.rewards, rewards)
    np.testing.assert_array_equal(made.terminated, terminated)
    assert 0 < terminated.sum() < len(terminated)
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("name", KNOWN)
def test_observations_show_the_state(name):
    truth = true_dynamics(gymnasium.make(name))
    states = drawn(truth, 100)
    np.testing.assert_allclose(truth.states(truth.observe(states)), states, atol=1e-12)


def test_the_noise_is_that_of_the_environment():
    truth = true_dynamics(gymnasium.make("losse/Gridworld-v0", noise=0.02))
    rng = np.random.default_rng(0)
    moved = truth.step(np.full((4000, 2), 0.3), np.ones(4000, dtype=int), rng).states
    assert moved[:, 0].mean() == pytest.approx(0.35, abs=0.001)
    assert moved[:, 0].std() == pytest.approx(0.02, rel=0.05)
    assert (moved[:, 1] == 0.3).all()


@pytest.mark.parametrize("name", KNOWN)
def test_starts_cover_the_space_and_nothing_else(name):
    truth = true_dynamics(gymnasium.make(name))
    states = drawn(truth, 2000)
    assert ((states >= truth.low) & (states <= truth.high)).all()
    assert not truth.ended(states).any()
    shares = (states - truth.low) / (truth.high - truth.low)
    for column in shares.T:
        assert (np.histogram(column, bins=5, range=(0, 1))[0] > 200).all()


def test_no_start_is_in_the_barrier_or_the_goal():
    layout = Layout(gap=(0.1, 0.2))
    truth = true_dynamics(gymnasium.make("losse/Gridworld-v0", gap=(0.1, 0.2)))
    states = drawn(truth, 2000)
    assert not (in_barrier(states, layout) | at_goal(states)).any()
    assert ((states[:, 0] > 0.5) & (states[:, 0] < 0.6)).any()  # but in the gap


@pytest.mark.parametrize("name", KNOWN)
def test_exploring_starts_can_be_repeated(name):
    def observations(seed):
        env = ExploringStarts(gymnasium.make(name))
        first = [env.reset(seed=seed)[0], *(env.reset()[0] for _ in range(4))]
        return np.array([*first, env.step(1)[0]])

    once = observations(3)
    np.testing.assert_array_equal(once, observations(3))
    assert not np.array_equal(once, observations(4))
    assert len(np.unique(once[:5], axis=0)) == 5
    assert once.dtype == np.float32


@pytest.mark.parametrize("name", KNOWN)
def test_an_exploring_start_is_where_the_environment_goes_on(name):
    env = ExploringStarts(gymnasium.make(name, **EXACT.get(name, {})))
    truth = true_dynamics(env)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    expected = truth.step(truth.states(obs[None].astype(float)), np.array([1]), env.np_random)
    np.testing.assert_allclose(env.step(1)[0], truth.observe(expected.states)[0], atol=1e-5)


def test_what_is_not_known_is_named():
    env = gymnasium.make("Ant-v5")
    for make in (true_dynamics, ExploringStarts):
        with pytest.raises(ValueError, match=r"'Ant-v5' are not known.*MountainCar-v0"):
            make(env)


def test_exploring_starts_go_inside_other_wrappers():
    low, high = np.float32(-1), np.float32(1)
    env = gymnasium.wrappers.RescaleObservation(gymnasium.make("Acrobot-v1"), low, high)
    with pytest.raises(ValueError, match="put that wrapper around ExploringStarts"):
        ExploringStarts(env)


def lived_through(name, steps):
    """Observations, actions, rewards, next observations and terminations of random actions."""
    if name.endswith("-v5"):
        pytest.importorskip("mujoco")
    env = gymnasium.make(name)
    env.action_space.seed(0)
    rows = []
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        action = env.action_space.sample()
        reached, reward, terminated, truncated, _ = env.step(action)
        rows.append((obs, action, reward, reached, terminated))
        obs = env.reset()[0] if terminated or truncated else reached
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("name", TERMINATIONS)
def test_a_rule_is_that_of_the_environment(name):
    obs, actions, _, reached, terminated = lived_through(name, 300)
    rule = known_termination(name)
    if rule == NEVER:
        assert not terminated.any()
        return
    np.testing.assert_array_equal(rule(obs, actions, reached), terminated)
    assert terminated.any()


@pytest.mark.parametrize("name", REWARDS)
def test_a_known_reward_is_that_of_the_environment(name):
    obs, actions, rewards, reached, _ = lived_through(name, 200)
    said = known_reward(name)(obs, actions, reached)
    np.testing.assert_allclose(said, rewards, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("options", [{}, {WEIGHT: 0.3}], ids=["usual", "other weight"])
def test_a_known_cost_is_that_of_the_environment(name, options):
    pytest.importorskip("mujoco")
    env = gymnasium.make(name, **options)
    env.action_space.seed(0)
    env.reset(seed=0)
    actions = np.array([env.action_space.sample() for _ in range(20)])
    truth = [env.step(action)[4]["reward_ctrl"] for action in actions]
    obs = np.zeros((20, 1))
    np.testing.assert_allclose(control_cost(name, options)(obs, actions, obs), truth, rtol=1e-5)


def test_other_environments_are_named():
    with pytest.raises(ValueError, match="'Taxi-v3' end is not known"):
        known_termination("Taxi-v3")
    with pytest.raises(ValueError, match="no part of the reward of 'Taxi-v3' is known"):
        control_cost("Taxi-v3")
    with pytest.raises(ValueError, match=r"the reward of 'Hopper-v5' is not known.*partly-known"):
        known_reward("Hopper-v5")
