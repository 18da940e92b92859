"""The imagined environment is an environment like any other."""

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from losse.world import ImaginedEnv, LosseWorldModel
from tests.world.worlds import BOUNDED, FOUR, PUSH, model_of, transitions

STARTS = transitions(40, seed=7)[0]


@pytest.fixture(scope="module")
def model():
    model = model_of()
    model.update(*transitions(600))
    return model


def play(envs, steps, seed):
    rng = np.random.default_rng(0)
    seen = [envs.reset(seed=seed)[0]]
    for _ in range(steps):
        obs, rewards, terminated, truncated, _ = envs.step(rng.integers(0, 4, envs.num_envs))
        seen += [obs, rewards, terminated, truncated]
    return seen


def test_it_is_the_model_step_by_step(model):
    envs = ImaginedEnv(model, STARTS, num_envs=5)
    obs, _ = envs.reset(seed=3)
    actions = np.array([0, 1, 2, 3, 1])
    expected = model.step(obs, actions)
    next_obs, rewards, terminated, truncated, info = envs.step(actions)
    for part, same in zip((next_obs, rewards, terminated), expected, strict=True):
        np.testing.assert_array_equal(part, same)
    assert not truncated.any()
    assert info == {}
    assert envs.observation_space.contains(next_obs)


def test_seeds_repeat_everything(model):
    envs = ImaginedEnv(model, STARTS, num_envs=3, max_episode_steps=4)
    first, again, other = play(envs, 20, 5), play(envs, 20, 5), play(envs, 20, 6)
    for one, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, same)
    assert (first[0] != other[0]).any()


def test_the_step_after_an_end_starts_anew(model):
    assert ImaginedEnv(model, STARTS).metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    envs = ImaginedEnv(model, STARTS, num_envs=4, max_episode_steps=6)
    rows = {tuple(row) for row in STARTS}
    obs, _ = envs.reset(seed=0)
    age = np.zeros(4, int)
    ended = np.zeros(4, bool)
    for _ in range(60):
        obs, rewards, terminated, truncated, _ = envs.step(np.ones(4, int))
        age = np.where(ended, 0, age + 1)
        assert all(tuple(row) in rows for row in obs[ended])
        assert not rewards[ended].any()
        assert not (terminated | truncated)[ended].any()
        np.testing.assert_array_equal(truncated, (age == 6) & ~terminated)
        ended = terminated | truncated
    assert not np.shares_memory(obs, envs._obs)


def test_starts_may_be_drawn_by_a_function(model):
    envs = ImaginedEnv(model, lambda n, rng: rng.uniform(-0.1, 0.1, (n, 2)), num_envs=6)
    assert np.abs(envs.reset(seed=0)[0]).max() <= 0.1
    with pytest.raises(ValueError, match="start_states returned 1 rows instead of 2"):
        ImaginedEnv(model, lambda n, rng: np.zeros((1, 2)), num_envs=2).reset()


def test_wrong_arguments(model):
    with pytest.raises(ValueError, match="start_states is empty"):
        ImaginedEnv(model, np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"start_states has shape \(2,\)"):
        ImaginedEnv(model, [0.0, 0.0])
    with pytest.raises(ValueError, match="num_envs=0"):
        ImaginedEnv(model, STARTS, num_envs=0)
    with pytest.raises(ValueError, match="max_episode_steps=0"):
        ImaginedEnv(model, STARTS, max_episode_steps=0)
    envs = ImaginedEnv(model, STARTS, num_envs=2)
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, int))
    envs.reset()
    with pytest.raises(ValueError, match="actions contains 9"):
        envs.step(np.array([0, 9]))


def test_it_shows_what_the_model_learns_meanwhile():
    model = model_of()
    envs = ImaginedEnv(model, [[0.5, 0.5]])
    envs.reset()
    np.testing.assert_array_equal(envs.step(np.array([3]))[0], [[0.5, 0.5]])
    model.update([[0.5, 0.5]], [3], [1.0], [[0.4, 0.5]], [False])
    assert envs.step(np.array([3]))[0][0, 0] < 0.45


def test_gymnasium_wrappers_work(model):
    envs = RecordEpisodeStatistics(ImaginedEnv(model, STARTS, num_envs=2, max_episode_steps=3))
    envs.reset(seed=0)
    for _ in range(3):
        *_, info = envs.step(envs.action_space.sample())
    assert info["episode"]["l"].max() == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.filterwarnings("ignore:.*(Casting input x|is infinity|not same as|deprecat)")
@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (BOUNDED, FOUR),
        (Box(-1, 1, (2,)), Box(-1, 1, (2,))),
        (Box(0, 255, (2, 2, 3), dtype=np.uint8), Discrete(3)),
        (Discrete(7), Discrete(2)),
    ],
    ids=str,
)
def test_gymnasiums_checker_passes(space, actions):
    model = model_of(space, actions)
    starts = np.stack([space.sample() for _ in range(5)])
    check_env(ImaginedEnv(model, starts, max_episode_steps=10).single(), skip_render_check=True)


@pytest.mark.parametrize(("space", "actions"), [(BOUNDED, FOUR), (BOUNDED, PUSH)], ids=str)
@pytest.mark.filterwarnings("ignore:.*(symmetric|float32)")
def test_stable_baselines_checker_passes(space, actions):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    model = model_of(space, actions)
    checker.check_env(ImaginedEnv(model, [[0.0, 0.0]], max_episode_steps=10).single())


def test_an_agent_learns_from_the_model_alone():
    """Imagined: two actions go left and right on a line, and right pays."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    rng = np.random.default_rng(0)
    obs, actions = rng.uniform(-1, 1, (400, 1)), rng.integers(0, 2, 400)
    next_obs = np.clip(obs + 0.2 * (2 * actions - 1)[:, None], -1, 1)
    model = LosseWorldModel(Box(-1, 1, (1,), dtype=np.float32), Discrete(2), termination="never")
    model.update(obs, actions, 2.0 * actions - 1.0, next_obs, np.zeros(400))
    env = ImaginedEnv(model, np.linspace(-1, 1, 11)[:, None], max_episode_steps=8).single()
    agent = stable_baselines3.DQN(
        "MlpPolicy", env, learning_starts=50, train_freq=1, gamma=0.5, learning_rate=5e-3,
        target_update_interval=50, exploration_fraction=0.5, seed=0,
        policy_kwargs={"net_arch": [16]},
    ).learn(400)  # fmt: skip
    chosen, _ = agent.predict(np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None])
    assert chosen.tolist() == [1] * 7
