"""Dict observations: kept flat, learned and imagined, and seen as a Dict by the agent."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse.dyna import DynaCallback, load_run, make_dyna, save_run
from losse.dyna.dict_buffer import DynaDictReplayBuffer
from losse.world import LosseWorldModel
from tests.dyna.agents import Line

SPACE = spaces.Dict(
    {
        "side": spaces.Discrete(2),
        "bits": spaces.MultiBinary(2),
        "place": spaces.Box(0, 10, (1, 1), np.float32),
    }
)


class Parts(gymnasium.ObservationWrapper):
    """The line, its place told in three ways."""

    def __init__(self, continuous=False):
        super().__init__(Line(continuous))
        self.observation_space = SPACE

    def observation(self, observation):
        whole = int(observation[0])
        bits = np.array([whole % 2, whole // 2 % 2], np.int8)
        return {"side": np.int64(whole >= 5), "bits": bits, "place": observation[None]}


def agent_for(kind, env, **options):
    chosen = {"planning_steps": 3, "update_every": 10, "learning_starts": 20, "batch_size": 8}
    small = {"policy_kwargs": {"net_arch": [8]}, "buffer_size": 500, "seed": 0}
    return make_dyna(kind, env, **(chosen | small | options))


@pytest.mark.parametrize("search_control", ["uniform", "prioritised", "on-policy"])
@pytest.mark.parametrize("horizon", [1, 3])
def test_a_dqn_learns_from_imagined_dicts(search_control, horizon):
    agent = agent_for(DQN, Parts(), search_control=search_control, horizon=horizon).learn(100)
    buffer = agent.replay_buffer
    assert isinstance(buffer, DynaDictReplayBuffer)
    assert buffer.world_model.n_transitions == 100
    assert buffer.meter.imagined_rows > 0
    batch = buffer.sample(32)  # four minibatches, the first of them real
    assert set(batch.observations) == set(SPACE)
    assert batch.next_observations["place"].shape == (32, 1, 1)
    seen = {key: part.numpy() for key, part in batch.next_observations.items()}
    assert set(np.unique(seen["side"])) <= {0, 1}
    assert set(np.unique(seen["bits"])) <= {0, 1}


def test_what_comes_out_is_what_went_in():
    agent = agent_for(DQN, Parts(), world_model="model-free").learn(60)
    batch = agent.replay_buffer.sample(40)
    place = batch.observations["place"].numpy()[:, 0, 0]
    whole = place.astype(int)
    assert np.array_equal(batch.observations["side"].numpy(), whole >= 5)
    assert np.array_equal(batch.observations["bits"].numpy()[:, 0], whole % 2)
    moved = np.where(batch.actions.numpy()[:, 0] == 1, 2.0, -1.0)
    expected = np.clip(place + moved, 0, 10)
    np.testing.assert_allclose(batch.next_observations["place"].numpy()[:, 0, 0], expected, 1e-6)


def test_continuous_actions_several_environments_and_normalisation(tmp_path):
    env = VecNormalize(DummyVecEnv([lambda: Parts(continuous=True)] * 2), norm_obs_keys=["place"])
    agent = agent_for(SAC, env, gradient_steps=4).learn(80)
    model = agent.replay_buffer.world_model
    assert isinstance(model, LosseWorldModel)
    assert model.n_transitions == 80
    places = agent.replay_buffer.obs(np.arange(80))[:, 2]  # bits, place, side
    assert 1 < places.max() <= 10  # the model sees the environment's units

    save_run(agent, tmp_path)
    again = load_run(SAC, tmp_path, DummyVecEnv([lambda: Parts(continuous=True)] * 2))
    again.learn(40, reset_num_timesteps=False)
    assert again.replay_buffer.world_model.n_transitions == 120


def test_a_buffer_of_ones_own():
    agent = DQN(
        "MultiInputPolicy",
        Parts(),
        gradient_steps=4,
        learning_starts=20,
        replay_buffer_class=DynaDictReplayBuffer,
        replay_buffer_kwargs={"planning_steps": 3},
    )
    agent.learn(60, callback=DynaCallback("losse"))
    assert agent.replay_buffer.world_model.n_transitions == 60


def test_policies_that_take_no_dict_are_named():
    with pytest.raises(ValueError, match=r"policy='MlpPolicy' takes no Dict.*MultiInputPolicy"):
        agent_for(DQN, Parts(), policy="MlpPolicy")
    sbx = pytest.importorskip("sbx")
    with pytest.raises(TypeError, match=r"sbx's DQN takes no Dict.*FlattenObservation"):
        agent_for(sbx.DQN, Parts())
