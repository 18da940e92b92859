"""The Gridworld: its dynamics, its rewards, its pictures, and what Gymnasium expects of it."""

import warnings

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

import losse.envs
from losse.envs import Gridworld
from losse.envs.gridworld import AGENT, WALL
from losse.envs.gridworld_dynamics import Layout, at_goal, in_barrier, move

UP, RIGHT, DOWN, LEFT = range(4)


def places(count, seed=0):
    """Random places where an agent can be."""
    positions = np.random.default_rng(seed).uniform(size=(count, 2))
    return positions[~in_barrier(positions, Layout())]


@pytest.mark.parametrize("options", [{}, {"reward": "sparse", "barrier": False, "noise": 0.0}])
def test_it_passes_gymnasiums_checker(options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*finds no display")
        check_env(gymnasium.make("losse/Gridworld-v0", **options).unwrapped)


def test_it_passes_the_checker_of_stable_baselines3():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(Gridworld())


def test_episodes_of_the_registered_environment_end_at_their_limit():
    env = gymnasium.make("losse/Gridworld-v0")
    env.reset(seed=0)
    for step in range(1, losse.envs.EPISODE_STEPS + 1):
        _, reward, terminated, truncated, _ = env.step(LEFT)
        assert (reward, terminated, truncated) == (-1.0, False, step == losse.envs.EPISODE_STEPS)


@pytest.mark.parametrize(
    ("action", "change"),
    [(UP, (0, 0.05)), (RIGHT, (0.05, 0)), (DOWN, (0, -0.05)), (LEFT, (-0.05, 0))],
)
def test_a_free_move_is_one_step_in_its_direction(action, change):
    assert move([0.3, 0.3], action) == pytest.approx(np.add([0.3, 0.3], change))
    assert move([0.3, 0.3], action, 0.02) == pytest.approx([0.3, 0.3] + 1.4 * np.array(change))


def test_no_move_ends_in_the_barrier_or_outside():
    rng = np.random.default_rng(1)
    positions = places(20_000)
    actions = rng.integers(4, size=len(positions))
    moved = move(positions, actions, rng.normal(0, 0.01, len(positions)))
    assert ((moved >= 0) & (moved <= 1)).all()
    assert not in_barrier(moved, Layout()).any()


def test_a_blocked_move_stays_and_only_the_gap_lets_through():
    beside = np.column_stack([np.full(99, 0.49), np.linspace(0.01, 0.99, 99)])
    through = move(beside, RIGHT)[:, 0] > 0.49
    assert (through == ((beside[:, 1] >= 0.4) & (beside[:, 1] <= 0.5))).all()
    assert (move(beside, RIGHT)[~through] == beside[~through]).all()
    assert (move(beside, RIGHT, 0.0, Layout(barrier=False))[:, 0] > 0.5).all()
    wide = move(beside, RIGHT, 0.0, Layout(gap=(0.2, 0.9)))[:, 0] > 0.49
    assert wide.sum() > through.sum()


def test_many_moves_are_the_moves_one_by_one():
    positions = places(50)
    actions = np.arange(len(positions)) % 4
    each = [move(place, action) for place, action in zip(positions, actions, strict=True)]
    assert (move(positions, actions) == np.array(each)).all()


def test_without_noise_the_environment_is_its_dynamics():
    env = Gridworld(noise=0.0)
    rng = np.random.default_rng(0)
    obs, _ = env.reset(seed=0)
    for action in rng.integers(4, size=300):
        expected = move(obs, action)
        obs, *_ = env.step(action)
        assert obs == pytest.approx(expected, abs=1e-6)


def test_noise_is_on_the_moved_axis_only():
    env = Gridworld(noise=0.01)
    lengths = []
    env.reset(seed=0)
    for _ in range(2000):
        env.reset(options={"start": (0.3, 0.3)})
        obs, *_ = env.step(UP)
        assert obs[0] == np.float32(0.3)
        lengths.append(obs[1] - 0.3)
    assert np.mean(lengths) == pytest.approx(0.05, abs=0.001)
    assert np.std(lengths) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize(
    ("reward", "on_the_way", "at_the_end"), [("step", -1, 0), ("sparse", 0, 1)]
)
def test_the_reward_and_the_end(reward, on_the_way, at_the_end):
    env = Gridworld(reward=reward, noise=0.0)
    env.reset(seed=0, options={"start": (0.98, 0.88)})
    _, gained, terminated, truncated, _ = env.step(UP)
    assert (gained, terminated, truncated) == (on_the_way, False, False)
    obs, gained, terminated, truncated, _ = env.step(UP)
    assert (gained, terminated, truncated) == (at_the_end, True, False)
    assert at_goal(obs)


def test_the_goal_can_be_reached_through_the_gap():
    env = Gridworld()
    obs, _ = env.reset(seed=0)
    terminated, steps = False, 0
    while not terminated:
        if obs[1] < 0.43 or (obs[0] > 0.62 and obs[1] <= 0.95):
            action = UP
        else:
            action = RIGHT if obs[1] < 0.48 or obs[0] > 0.62 else DOWN
        obs, _, terminated, _, _ = env.step(action)
        steps += 1
        assert steps < 100
    assert 36 <= steps <= 50


def test_a_seed_fixes_the_episode():
    def episode(seed):
        env = Gridworld()
        return [env.reset(seed=seed)[0].tolist(), *(env.step(k % 2)[0].tolist() for k in range(50))]

    assert episode(3) == episode(3) != episode(4)


def test_episodes_start_in_the_corner():
    env = Gridworld()
    starts = np.array([env.reset(seed=seed)[0] for seed in range(200)])
    assert starts.min() >= 0
    assert 0.04 < starts.max() <= 0.05


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"reward": "dense"}, "reward must be"),
        ({"gap": (0.5, 0.5)}, "gap must be"),
        ({"gap": (0.5, 1.5)}, "gap must be"),
        ({"noise": -0.1}, "noise must be"),
        ({"noise": np.nan}, "noise must be"),
        ({"step_size": 0}, "step_size must be"),
        ({"render_mode": "ansi"}, "render_mode must be"),
    ],
)
def test_nonsense_options_are_refused(option, message):
    with pytest.raises(ValueError, match=message):
        Gridworld(**option)


@pytest.mark.parametrize("action", [4, -1, 0.5, None])
def test_a_refused_action_changes_nothing(action):
    env, same = Gridworld(), Gridworld()
    for world in (env, same):
        world.reset(seed=0)
    with pytest.raises(ValueError, match="action must be an integer from 0 to 3"):
        env.step(action)
    assert env.step(UP)[0].tolist() == same.step(UP)[0].tolist()


@pytest.mark.parametrize("start", [(0.55, 0.2), (2, 0), (np.nan, 0), (0.1,)])
def test_an_impossible_start_is_refused(start):
    env = Gridworld()
    with pytest.raises(ValueError, match="start must be a point"):
        env.reset(options={"start": start})


def test_steps_and_pictures_need_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded):
        Gridworld().step(UP)
    with pytest.raises(gymnasium.error.ResetNeeded):
        Gridworld("rgb_array").render()


def test_the_picture_shows_the_agent_and_the_barrier():
    env = Gridworld("rgb_array")
    env.reset(options={"start": (0.25, 0.75)})
    picture = env.render()
    assert picture.dtype == np.uint8
    assert tuple(picture[100, 100]) == AGENT
    assert tuple(picture[10, 220]) == WALL
    env.reset(options={"start": (0.75, 0.25)})
    assert tuple(env.render()[100, 100]) != AGENT
    no_barrier = Gridworld("rgb_array", barrier=False)
    no_barrier.reset()
    assert not (no_barrier.render() == WALL).all(axis=-1).any()


def test_gymnasium_adds_the_window():
    with pytest.warns(UserWarning, match="HumanRendering"):
        env = gymnasium.make("losse/Gridworld-v0", render_mode="human")
    assert isinstance(env, gymnasium.wrappers.HumanRendering)
    assert env.unwrapped.render_mode == "rgb_array"
    with pytest.raises(ValueError, match=r"'human' is for gymnasium\.make"):
        Gridworld("human")


def test_rendering_without_a_mode_warns():
    env = Gridworld()
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
