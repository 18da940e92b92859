"""Where imagination starts, under each search control."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces

from losse.dyna import search
from losse.dyna.search import SEARCH_CONTROLS, Visited
from tests.dyna.agents import Line, small


@pytest.fixture(scope="module")
def agent():
    return small(env=Line(limit=7), exploration_fraction=1.0).learn(200)


@pytest.fixture
def visited(agent):
    return Visited(agent.replay_buffer, agent, None, np.random.default_rng(0))


def stored(agent):
    return agent.replay_buffer.observations[: agent.replay_buffer.size()].reshape(-1)


def test_uniform_starts_are_visited_states_old_and_new(agent, visited):
    starts = search.uniform(visited, 2000)[:, 0]
    states = stored(agent)
    assert np.isin(starts, states).all()
    assert len(np.unique(starts)) > 0.95 * len(np.unique(states))


def test_on_policy_starts_are_the_latest_states(agent, visited, monkeypatch):
    monkeypatch.setattr(search, "RECENT", 10)
    starts = search.recent(visited, 200)[:, 0]
    assert set(starts) == set(stored(agent)[-10:])


def test_a_row_before_is_the_step_that_led_here(agent, visited):
    rows = np.arange(len(visited))
    before = visited.before(rows)
    moved = before != rows
    led_to = visited.transitions(before[moved]).next_obs
    assert np.array_equal(led_to, visited.obs(rows[moved]))
    ended = agent.replay_buffer.dones[: len(rows), 0] > 0
    assert np.array_equal(~moved[1:], ended[:-1])
    assert not moved[0]


def test_prioritised_starts_are_where_values_are_wrong(agent, visited, monkeypatch):
    wrong = 17
    monkeypatch.setattr(Visited, "surprise", lambda self, rows: np.where(rows == wrong, 1.0, 0.0))
    monkeypatch.setattr(search, "POOL", 40)
    starts = set(search.prioritised(visited, 100)[:, 0])
    there = np.array([wrong])
    assert starts == {visited.obs(there).item(), visited.obs(visited.before(there)).item()}


def test_surprise_is_the_temporal_difference_error(agent, visited):
    rows = np.arange(50)
    happened = visited.transitions(rows)
    values = visited.values(happened.obs)
    greedy, _ = agent.predict(happened.obs, deterministic=True)
    own = happened.actions == greedy
    future = np.where(happened.terminated, 0, agent.gamma * visited.values(happened.next_obs))
    expected = np.abs(happened.rewards + future - values)
    assert np.allclose(visited.surprise(rows)[own], expected[own], atol=1e-5)


def test_climbing_goes_up_and_stays_inside(agent, visited, monkeypatch):
    monkeypatch.setattr(Visited, "values", lambda self, obs: -np.abs(obs[:, 0] - 3.0))
    climbed = SEARCH_CONTROLS["hill-climbing"].starts(visited, 500)[:, 0]
    visited.rng = np.random.default_rng(0)
    begun = visited.obs(visited.any(500))[:, 0]
    assert (np.abs(climbed - 3) <= np.abs(begun - 3) + 1e-6).all()
    assert np.abs(climbed - 3).mean() < np.abs(begun - 3).mean() - 0.05
    assert climbed.min() >= 0
    assert climbed.max() <= 10


@pytest.mark.parametrize("name", sorted(SEARCH_CONTROLS))
@pytest.mark.parametrize("horizon", [1, 3])
def test_every_control_trains(name, horizon):
    agent = small(search_control=name, horizon=horizon).learn(60)
    meter = agent.replay_buffer.meter
    assert meter.imagined_rows == 2 * meter.real_rows


def test_every_control_works_with_actors_and_critics():
    for name in SEARCH_CONTROLS:
        agent = small("stable_baselines3.TD3", search_control=name).learn(30)
        assert agent.replay_buffer.meter.imagined_rows > 0


def test_climbing_needs_real_observations():
    env = Line()
    env.observation_space = spaces.Discrete(11)
    with pytest.raises(ValueError, match="hill-climbing"):
        small(env=env, search_control="hill-climbing")
