"""Agents of SBX with a `JaxWorldModel`: what they imagine is right, and never leaves JAX."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sbx")
import jax
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse import FTLRegressor, LosseEncoder
from losse.dyna import load_run, save_run
from losse.world import JaxWorldModel, LosseWorldModel
from tests.dyna.agents import Line, agent_class, small

REGRESSOR = FTLRegressor(LosseEncoder(5, n_bins=5, grid_dim=2), solver="sparse", ridge=1e-5)
PLACES = np.linspace(0, 9, 10, dtype=np.float32)[:, None]


def on_device(name, env=None, **options):
    defaults = {"world_model": "jax", "model_options": {"regressor": REGRESSOR}}
    env = env or Line(continuous=name != "sbx.DQN")
    return small(name, env, **defaults | {"learning_rate": 1e-2, "gamma": 0.5} | options)


@pytest.fixture(scope="module")
def dqn():
    """An agent that follows each start for two steps."""
    return on_device("sbx.DQN", horizon=2).learn(200)


@pytest.fixture(scope="module")
def sac():
    """An agent that sees normalised observations, and what its training was given."""
    env = VecNormalize(DummyVecEnv([lambda: Line(continuous=True)]), norm_reward=True)
    agent = on_device("sbx.SAC", env, pool_rows=4)
    given, train = [], agent._train

    def seen(*arguments):
        given.append(arguments[3])
        return train(*arguments)

    agent._train = seen
    agent.learn(160)
    del agent._train
    return agent, given


def minibatches(agent):
    """One call's minibatches, made without any implicit transfer, and which rows are imagined."""
    buffer, count = agent.replay_buffer, agent.gradient_steps
    buffer.end_training_call()
    buffer.sample(count * agent.batch_size, agent.get_vec_normalize_env())  # compiles
    buffer.end_training_call()
    with jax.transfer_guard("disallow"):
        data = buffer.sample(count * agent.batch_size, agent.get_vec_normalize_env())
    return data, buffer.options.imagined(0, count, agent.batch_size)


def test_what_is_imagined_stays_in_jax(dqn, sac):
    for agent in (dqn, sac[0]):
        data, imagined = minibatches(agent)
        columns = [column.numpy() for column in data[:5]]
        assert all(isinstance(column, jax.Array) for column in columns)
        assert {len(column) for column in columns} == {len(imagined)}
        assert agent.replay_buffer.meter.imagined_rows > agent.replay_buffer.meter.real_rows
    imagining = [data for data in sac[1] if isinstance(data.observations, jax.Array)]
    assert len(imagining) >= len(sac[1]) - 10  # until the model has learned something
    assert all(isinstance(column, jax.Array) for data in imagining for column in data[:5])


def test_agents_learn_from_it(dqn, sac):
    assert dqn.predict(PLACES, deterministic=True)[0].all()  # to the right
    agent = sac[0]
    seen = agent.get_vec_normalize_env().normalize_obs(PLACES)
    assert agent.predict(seen, deterministic=True)[0][:8].min() > 3  # of 4


def test_discrete_rows_are_those_of_the_host(dqn):
    buffer, options = dqn.replay_buffer, {"regressor": REGRESSOR, "seed": 0}
    model = LosseWorldModel(buffer.observation_space, buffer.action_space, **options)
    model.update(*buffer.transitions(np.arange(200)))
    data, imagined = minibatches(dqn)
    obs, actions, next_obs, dones, rewards = (
        np.asarray(column.numpy())[imagined] for column in data[:5]
    )
    expected, gained, ended = model.step(obs, actions[:, 0])
    np.testing.assert_allclose(next_obs, expected, atol=1e-3)
    np.testing.assert_allclose(rewards[:, 0], gained, atol=1e-3)
    assert np.array_equal(dones[:, 0] == 1, ended)
    visited = np.isin(obs, buffer.observations[:200])[:, 0]
    assert 0.4 < visited.mean() < 0.9  # others are imagined, from states in which none has ended
    assert np.isin(obs[~visited], next_obs[~ended]).mean() > 0.9
    assert not np.isin(obs[~visited], next_obs[ended]).any()
    greedy = dqn.predict(obs, deterministic=True)[0]
    assert 0.5 < np.mean(greedy == actions[:, 0]) < 1  # half of the others are greedy by chance


def test_continuous_rows_are_normalised_and_in_the_units_of_the_agent(sac):
    agent, _ = sac
    env, buffer = agent.get_vec_normalize_env(), agent.replay_buffer
    data, imagined = minibatches(agent)
    obs, actions, next_obs, _, rewards = (
        np.asarray(column.numpy(), np.float64)[imagined] for column in data[:5]
    )
    assert abs(actions).max() <= 1 + 1e-6
    assert abs(actions).max() > 0.9  # and not those of the environment, 0 to 4
    obs, next_obs = env.unnormalize_obs(obs), env.unnormalize_obs(next_obs)
    gained = env.unnormalize_reward(rewards[:, 0])
    true = np.clip(obs + buffer.conversion.model_actions(actions) - 1, 0, 10)
    assert np.abs(next_obs - true).mean() < 0.5
    assert np.corrcoef(gained, (true - obs)[:, 0])[0, 1] > 0.9
    real = [np.asarray(column.numpy())[~imagined] for column in data[:5]]
    kept = env.normalize_obs(buffer.observations[: buffer.size()]).ravel()
    assert np.abs(real[0] - kept).min(axis=1).max() < 1e-5


def test_a_run_goes_on(sac, tmp_path):
    agent, _ = sac
    save_run(agent, tmp_path)
    again = load_run(agent_class("sbx.SAC"), tmp_path, Line(continuous=True))
    models = [one.replay_buffer.world_model for one in (agent, again)]
    assert isinstance(models[1], JaxWorldModel)
    ahead = np.ones((10, 1), np.float32)
    first, second = (model.step(PLACES, ahead) for model in models)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    for one in (agent, again):
        one.replay_buffer._rng = np.random.default_rng(7)
    pairs = zip(minibatches(agent)[0][:5], minibatches(again)[0][:5], strict=True)
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)  # of the same pool


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match=r"agent_class=stable_base.*DQN is none: use sbx.DQN"):
        small("stable_baselines3.DQN", world_model="jax")
    line = Line(continuous=True)
    line.observation_space = spaces.Dict(place=line.observation_space)
    with pytest.raises(TypeError, match=r"observation_space=Dict.*FlattenObservation"):
        on_device("sbx.SAC", line)
