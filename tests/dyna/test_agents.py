"""Every agent that is said to work does, with one environment and with several."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")
pytest.importorskip("sbx")

from stable_baselines3.common.vec_env import DummyVecEnv

from losse.dyna import load_run, save_run
from losse.dyna.agents import action_values, state_values
from losse.dyna.divergence import require_healthy
from tests.dyna.agents import CONTINUOUS, DISCRETE, Line, agent_class, small


@pytest.mark.parametrize("name", DISCRETE + CONTINUOUS)
def test_learns_and_comes_back(name, tmp_path):
    agent = small(name).learn(60)
    buffer = agent.replay_buffer
    assert buffer.world_model.n_transitions == 60
    assert buffer.meter.imagined_rows > buffer.meter.real_rows > 0

    obs = np.linspace(0, 9, 8, dtype=np.float32)[:, None]
    values = state_values(agent, obs)
    assert values.shape == (8,)
    actions, _ = agent.predict(obs, deterministic=True)
    if name in DISCRETE:
        assert np.allclose(action_values(agent, obs, actions[:, None]), values)
    require_healthy(agent)

    agent.save(tmp_path / "agent.zip")
    again = agent_class(name).load(tmp_path / "agent.zip")
    assert np.array_equal(again.predict(obs, deterministic=True)[0], actions)


@pytest.mark.parametrize("name", ["sbx.DQN", "stable_baselines3.SAC"])
def test_several_environments(name):
    continuous = name in CONTINUOUS
    env = DummyVecEnv([lambda: Line(continuous)] * 3)
    agent = small(name, env).learn(120)
    assert agent.replay_buffer.world_model.n_transitions == 120


@pytest.mark.parametrize("method", ["losse", "online"])
def test_a_run_of_sbx_goes_on_with_its_model(method, tmp_path):
    options = {"model_options": {"hidden": (8,)}} if method == "online" else {}
    agent = small("sbx.DQN", world_model=method, **options).learn(40)
    save_run(agent, tmp_path)
    again = load_run(agent_class("sbx.DQN"), tmp_path, Line())
    places = np.linspace(0, 9, 8, dtype=np.float32)[:, None]
    assert np.array_equal(state_values(again, places), state_values(agent, places))
    models = [one.replay_buffer.world_model for one in (agent, again)]
    first, second = (model.step(places, np.ones(8, dtype=int)) for model in models)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    again.learn(40, reset_num_timesteps=False)
    assert again.replay_buffer.world_model.n_transitions == 80


def test_training_mode_survives_imagination():
    # CrossQ normalises by the batch in training, and by running statistics otherwise.
    agent = small("sb3_contrib.CrossQ", learning_starts=0)
    seen = []
    sample = agent.replay_buffer.sample
    agent.replay_buffer.sample = lambda *args, **kw: (
        sample(*args, **kw),
        seen.append(agent.policy.training),
    )[0]
    agent.learn(20)
    assert seen
    assert all(seen)
