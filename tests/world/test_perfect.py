"""A perfect model is right about everything that is not chance, in the units that agents see."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RescaleObservation, TransformObservation, TransformReward

from losse.envs import ExploringStarts
from losse.envs.simulated_dynamics import PUTS
from losse.envs.true_dynamics import KNOWN
from losse.world import PerfectModel

ONE = np.float32(1)
CLIPPED = {"Walker2d-v5", "InvertedDoublePendulum-v5"}
"""Velocities beyond 10 are not shown."""
ENDING = {"CartPole-v1", "Hopper-v5", "Walker2d-v5", "InvertedPendulum-v5"}
ENDING |= {"InvertedDoublePendulum-v5"}


def environment(name, rescaled, **options):
    if name.startswith("losse/"):
        options = {"noise": 0.0, "step_size": 0.4} | options
    env = ExploringStarts(gymnasium.make(name, **options))
    return RescaleObservation(env, -ONE, ONE) if rescaled else env


def happened(env, n, seed=0):
    """Real transitions: obs, actions, rewards, next_obs, terminated."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    rows = []
    for k in range(n):
        if k % 5 == 0:
            obs, _ = env.reset()
        action = int(rng.integers(env.action_space.n))
        next_obs, reward, terminated, _, _ = env.step(action)
        rows.append((obs, action, reward, next_obs, terminated))
        obs = env.reset()[0] if terminated else next_obs
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("name", KNOWN)
def test_its_steps_are_those_of_the_environment(name, rescaled):
    env = environment(name, rescaled)
    obs, actions, rewards, next_obs, terminated = happened(env, 400)
    imagined = PerfectModel(env).step(obs, actions)
    # Observations are rounded; what comes of them is as exact as they are.
    np.testing.assert_allclose(imagined[0], next_obs, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(imagined[1], rewards)
    np.testing.assert_array_equal(imagined[2], terminated)
    assert imagined[0].dtype == np.float32
    assert terminated.any()


@pytest.mark.parametrize("name", PUTS)
def test_a_simulator_does_what_the_environment_does(name):
    if name not in ("CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0"):
        pytest.importorskip("mujoco")
    env = gymnasium.make(name)
    model = PerfectModel(env)
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    slow, ends = 0, 0
    for _ in range(80):
        action = env.action_space.sample()
        imagined, rewards, terminated = model.step(obs[None], np.array([action]))
        after, reward, ended, cut, _ = env.step(action)
        if name not in CLIPPED or np.abs(obs).max() < 10:
            np.testing.assert_allclose(imagined[0], after, atol=1e-5)
            assert rewards[0] == pytest.approx(reward, abs=1e-5)
            assert terminated[0] == ended
            slow += 1
        ends += ended
        obs = env.reset()[0] if ended or cut else after
    assert slow > 10
    assert (ends > 0) == (name in ENDING)


def test_exploring_starts_need_rules():
    with pytest.raises(ValueError, match="do without exploring starts"):
        ExploringStarts(gymnasium.make("Pendulum-v1"))


def test_it_has_nothing_to_learn_but_counts():
    env = environment("MountainCar-v0", True)
    data = happened(env, 50)
    model = PerfectModel(env)
    before = model.step(*data[:2])
    wrong = (*data[:3], -data[3], ~data[4])
    model.update(*wrong)
    assert model.n_transitions == 50
    for one, other in zip(before, model.step(*data[:2]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.step(data[0][:0], data[1][:0])[0].shape == (0, 2)


def test_noise_is_decided_by_the_seed(tmp_path):
    env = environment("losse/Gridworld-v0", True, noise=0.01)
    obs, actions = happened(env, 20)[:2]
    model, same, other = (PerfectModel(env, seed=seed) for seed in (1, 1, 2))
    first = model.step(obs, actions)[0]
    np.testing.assert_array_equal(first, same.step(obs, actions)[0])
    assert not np.array_equal(first, other.step(obs, actions)[0])
    assert not np.array_equal(first, model.step(obs, actions)[0])


def test_it_comes_back_as_it_was(tmp_path):
    env = environment("losse/Gridworld-v0", True, noise=0.01)
    data = happened(env, 20)
    model = PerfectModel(env, seed=1)
    model.update(*data)
    model.save(tmp_path / "model")
    again = PerfectModel.load(tmp_path / "model", env)
    assert again.n_transitions == 20
    np.testing.assert_array_equal(model.step(*data[:2])[0], again.step(*data[:2])[0])
    right = json.loads((tmp_path / "model").read_text())
    huge = right["noise"] | {"state": {"state": 2**200, "inc": 2**200}}
    for text in (
        '{"n_transitions": 3}',
        "[" * 100_000,
        "3",
        "",
        json.dumps(right | {"noise": huge}),
        json.dumps(right | {"n_transitions": "many"}),
    ):
        (tmp_path / "other").write_text(text)
        with pytest.raises(ValueError, match="other is not a saved PerfectModel"):
            PerfectModel.load(tmp_path / "other", env)


def test_what_it_cannot_know_is_refused():
    with pytest.raises(ValueError, match="'Ant-v5' are not known"):
        PerfectModel(gymnasium.make("Ant-v5"))
    env = gymnasium.make("MountainCar-v0")
    for wrapped in (
        TransformObservation(env, lambda obs: obs + 1, env.observation_space),
        TransformReward(env, lambda reward: reward / 2),
    ):
        with pytest.raises(ValueError, match=f"what {type(wrapped).__name__} does"):
            PerfectModel(wrapped)
