"""What `make_dyna` sets, and what it refuses."""

from collections.abc import Iterator
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

from losse.dyna import make_dyna
from losse.dyna.models import model_for
from losse.world import LosseWorldModel, PerfectModel
from tests.dyna.agents import Line, small


def target_updates(agent, steps, monkeypatch):
    """Gradient steps that the agent had taken at each update of its target network."""
    import stable_baselines3.dqn.dqn as module

    found, update = [], module.polyak_update

    def spy(source, target, tau):
        if isinstance(source, Iterator):  # statistics of batches are a list
            found.append(agent._n_updates)
        update(source, target, tau)

    monkeypatch.setattr(module, "polyak_update", spy)
    agent.learn(steps)
    return sorted(set(found))


@pytest.mark.parametrize("n_envs", [1, 2])
def test_the_target_network_is_paced_in_gradient_steps(n_envs, monkeypatch):
    env = DummyVecEnv([Line] * n_envs)
    agent = small(env=env, planning_steps=9, learning_starts=0, target_update_gradient_steps=50)
    updates = target_updates(agent, 160 * n_envs, monkeypatch)
    assert np.diff(updates).tolist() == [50] * (len(updates) - 1)
    assert len(updates) > 5


def test_own_arguments_take_precedence():
    agent = small(gradient_steps=7, target_update_interval=123, train_freq=2)
    assert (agent.gradient_steps, agent.target_update_interval) == (7, 123)
    assert agent.train_freq.frequency == 2


def test_the_share_follows_the_actions():
    assert small().replay_buffer.options.real_share == "alternate"
    assert small("stable_baselines3.SAC").replay_buffer.options.real_share == 0.05


def test_a_model_can_be_given_and_may_know_something_already():
    env = Line()
    model = LosseWorldModel(env.observation_space, env.action_space, termination="never")
    model.update([[1.0]], [1], [2.0], [[3.0]], [False])
    agent = small(world_model=model).learn(40)
    assert agent.replay_buffer.world_model is model
    assert model.n_transitions == 41


def test_progress_bar_and_callbacks_as_usual(capsys):
    calls = []
    small().learn(20, callback=lambda *_: bool(calls.append(1)) or True, progress_bar=True)
    assert len(calls) == 20


def test_same_seed_same_agent():
    places = np.linspace(0, 9, 50, dtype=np.float32)[:, None]
    one, two = (small(seed=3).learn(80).q_net_target for _ in range(2))
    import torch

    assert torch.equal(one(torch.tensor(places)), two(torch.tensor(places)))


def test_an_oracle_looks_into_the_environment():
    agent = make_dyna(DQN, "MountainCar-v0", "oracle", buffer_size=100)
    assert isinstance(agent.replay_buffer.world_model, PerfectModel)
    agent.env = Mock(unwrapped=Mock(envs=None))  # as with SubprocVecEnv
    with pytest.raises(ValueError, match="use a DummyVecEnv, or a PerfectModel"):
        model_for(agent, "oracle")


@pytest.mark.parametrize("env", [None, 3, object()])
def test_what_is_no_environment_is_refused(env):
    with pytest.raises(TypeError, match="is no environment"):
        make_dyna(DQN, env)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"world_model": "magic"}, ValueError, "full-replay"),
        ({"world_model": 3}, TypeError, "WorldModel"),
        ({"n_steps": 3}, ValueError, "n_steps=3"),
        ({"replay_buffer_class": ReplayBuffer}, ValueError, "replay_buffer_class"),
        ({"planning_steps": 1.5}, TypeError, "planning_steps"),
        ({"world_model": "model-free", "model_options": {"seed": 1}}, ValueError, "model_options"),
        ({"world_model": "oracle", "model_options": {"seed": 1}}, ValueError, "model_options"),
        ({"world_model": "oracle"}, ValueError, "'Line' are not known"),
        ({"target_update_gradient_steps": 0}, ValueError, "target_update_gradient_steps"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make_dyna(DQN, Line(), **options)


def test_the_policy_may_come_first_as_in_stable_baselines3():
    from stable_baselines3.dqn.policies import DQNPolicy

    for given in ("MlpPolicy", DQNPolicy):
        agent = make_dyna(DQN, given, "CartPole-v1", world_model="model-free", buffer_size=100)
        assert agent.env.envs[0].spec.id == "CartPole-v1"
        assert agent.replay_buffer.world_model is None
    agent = make_dyna(DQN, "MlpPolicy", "CartPole-v1", "online", buffer_size=100)
    assert agent.replay_buffer.world_model.memory == "online"
    agent = make_dyna(agent_class=DQN, env="CartPole-v1", policy="MlpPolicy", buffer_size=100)
    assert isinstance(agent.replay_buffer.world_model, LosseWorldModel)


@pytest.mark.parametrize(
    ("places", "names", "message"),
    [
        ((), {}, "needs env"),
        (("MlpPolicy",), {}, "needs env"),
        (("CartPole-v1",), {"env": "Acrobot-v1"}, "env was given twice"),
        (("MlpPolicy", "CartPole-v1"), {"policy": "MlpPolicy"}, "policy was given twice"),
        (("CartPole-v1", "losse", 16), {}, "16 is too many"),
    ],
)
def test_wrong_places_are_named(places, names, message):
    with pytest.raises(TypeError, match=message):
        make_dyna(DQN, *places, **names)


def test_on_policy_agents_are_refused():
    with pytest.raises(TypeError, match="off-policy"):
        make_dyna(PPO, Line())
    with pytest.raises(TypeError, match="off-policy"):
        make_dyna("DQN", Line())


def test_n_step_returns_are_refused_when_bound():
    env = Line()
    agent = DQN("MlpPolicy", env, n_steps=3)
    with pytest.raises(ValueError, match="n_steps=3"):
        small().replay_buffer.bind(agent, None)


class Seen(gymnasium.ObservationWrapper):
    """The line, with its place shown in another way."""

    def __init__(self, env, space, show):
        super().__init__(env)
        self.observation_space, self.show = space, show

    def observation(self, observation):
        return self.show(observation)


PLACES = spaces.Box(0, 10, (1,))
IMAGE = spaces.Box(0, 255, (64, 64, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "show", "message"),
    [
        (spaces.Tuple([PLACES]), lambda seen: (seen,), "FlattenObservation"),
        (
            spaces.Dict(where=spaces.Dict(place=PLACES)),
            lambda seen: {"where": {"place": seen}},
            "FlattenObservation",
        ),
        (IMAGE, lambda seen: np.zeros((64, 64, 3), np.uint8), "holds images"),
    ],
)
@pytest.mark.parametrize("policy", ["MlpPolicy", "MultiInputPolicy"])
def test_observations_that_cannot_be_imagined_are_refused(space, show, message, policy):
    with pytest.raises(TypeError, match=f"observation_space=.*{message}"):
        make_dyna(DQN, Seen(Line(), space, show), policy=policy)
    flattened = gymnasium.wrappers.FlattenObservation(Seen(Line(), space, show))
    if message == "FlattenObservation":
        assert small(env=flattened).learn(40).replay_buffer.world_model.n_transitions == 40


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([3, 3]), spaces.MultiBinary(2)])
def test_actions_that_no_agent_takes_are_refused(space):
    env = Line()
    env.action_space = space
    with pytest.raises(ValueError, match=r"no agent takes the actions Multi.*Discrete and Box"):
        make_dyna(DQN, env)


def test_an_agent_for_other_actions_is_refused():
    with pytest.raises(ValueError, match=r"'dqn' does not suit.*choose from: sac"):
        make_dyna(DQN, Line(continuous=True))


@pytest.mark.parametrize(
    ("space", "show"),
    [
        (spaces.MultiDiscrete([11, 2]), lambda seen: np.array([int(seen[0]), int(seen[0]) % 2])),
        (spaces.MultiBinary(4), lambda seen: (int(seen[0]) >> np.arange(4)) & 1),
    ],
)
def test_choices_and_bits_as_observations(space, show):
    agent = small(env=Seen(Line(), space, show)).learn(80)
    model = agent.replay_buffer.world_model
    assert model.n_transitions == 80
    assert agent.replay_buffer.meter.imagined_rows > 0
    obs = agent.replay_buffer.sample(8).next_observations.numpy()
    assert all(space.contains(row) for row in obs.astype(space.dtype))


def test_discrete_observations():
    env = Seen(Line(), spaces.Discrete(11), lambda seen: int(seen[0]))
    agent = small(env=env).learn(80)
    assert agent.replay_buffer.world_model.n_transitions == 80
