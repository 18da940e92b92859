"""Streams: made once, from a seed; what is tested on comes from other episodes."""

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from benchmarks import recording
from benchmarks.accuracy.plan import LARGE, SMALL
from benchmarks.accuracy.streams import cache
from benchmarks.recording import Rows, make


@pytest.fixture(autouse=True)
def few_tests(monkeypatch):
    monkeypatch.setattr(cache, "TEST_ROWS", 50)


def test_made_once(tmp_path, monkeypatch):
    wanted = ("random", "Pendulum-v1", 60, 3)
    assert not cache.is_cached(*wanted, folder=tmp_path)
    made = cache.load(*wanted, folder=tmp_path)
    assert cache.is_cached(*wanted, folder=tmp_path)
    monkeypatch.setattr(recording, "random_policy", None)
    for before, after in zip(made, cache.load(*wanted, folder=tmp_path), strict=True):
        assert np.array_equal(before, after)


def test_the_same_from_the_same_seed(tmp_path):
    first, second, other = (
        cache.load("random", "Pendulum-v1", 40, seed, tmp_path / folder)
        for seed, folder in ((0, "a"), (0, "b"), (1, "a"))
    )
    assert np.array_equal(first.X, second.X)
    assert not np.array_equal(first.X, other.X)
    assert not np.array_equal(first.X, first.X_test[:40])


def test_episodes_are_learned_or_tested_never_both():
    episode = np.repeat(np.arange(24), 10)
    rows = Rows(np.arange(240.0)[:, None], np.arange(240.0)[:, None], episode)
    stream = cache.hold_out(rows, 200)
    learned, tested = set(stream.X[:, 0] // 10), set(stream.X_test[:, 0] // 10)
    assert tested == {5, 11, 17, 23}
    assert learned == set(range(24)) - tested
    assert (np.diff(stream.X[:, 0]) > 0).all()
    with pytest.raises(ValueError, match="only 200 rows are left to learn, asked for 201"):
        cache.hold_out(rows, 201)


@pytest.mark.parametrize("name", ["Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_targets_lead_to_the_next_observation(name):
    rows = recording.random_policy(name, 30, seed=0)
    n_outputs = rows.Y.shape[1] - 1
    same = rows.episode[1:] == rows.episode[:-1]
    following = (rows.X[:, :n_outputs] + rows.Y[:, :-1])[:-1]
    assert np.allclose(following[same], rows.X[1:, :n_outputs][same], atol=1e-6)


def test_parts_are_state_reward_and_how_episodes_end():
    pytest.importorskip("mujoco")
    rows = recording.random_policy("Hopper-v5", 120, seed=0)
    parts = cache.parts("Hopper-v5")
    assert np.array_equal(parts["state"](rows.X, rows.Y), rows.Y[:, :11])
    assert np.array_equal(parts["reward"](rows.X, rows.Y), rows.Y[:, 11:])
    ends = parts["termination"](rows.X, rows.Y)[:, 0]
    assert ends[:-1].tolist() == np.diff(rows.episode).tolist()
    assert ends.sum() > 1
    assert "termination" not in cache.parts("HalfCheetah-v5") | cache.parts("Acrobot-v1")


def test_an_agent_is_recorded():
    pytest.importorskip("sbx")
    rows = recording.changing_policy("Pendulum-v1", 30, seed=0)
    assert rows.X.shape == (30, 4)
    assert np.abs(rows.X[:, 3]).max() > 1.0  # the environment's own actions reach from -2 to 2
    again = recording.changing_policy("Pendulum-v1", 30, seed=0)
    assert np.array_equal(rows.X, again.X)


def test_discrete_actions_are_indicators():
    actions = recording.random_policy("Acrobot-v1", 20, seed=0).X[:, 6:]
    assert actions.shape == (20, 3)
    assert (actions.sum(axis=1) == 1).all()


def test_large_bodies_have_positions_and_velocities_alone():
    pytest.importorskip("mujoco")
    assert make("Ant-v5").observation_space.shape == (27,)
    assert make("Humanoid-v5").observation_space.shape == (45,)


def test_who_is_recorded_sees_the_end_of_an_episode():
    env = make("Pendulum-v1")
    env.reset(seed=0)
    for _ in range(200):
        *_, truncated, _ = env.step(env.action_space.sample())
    assert truncated
    env.reset()
    env.step(env.action_space.sample())
    assert env.rows().episode.tolist() == [0] * 200 + [1]


@pytest.mark.parametrize("name", LARGE + SMALL)
def test_all_environments_of_the_plan_can_be_made(name):
    if name in LARGE:
        pytest.importorskip("mujoco")
    assert len(recording.random_policy(name, 3, seed=0).X) == 3
