"""What a Dyna replay buffer learns from, and what it hands out."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse.dyna import DynaCallback, DynaReplayBuffer
from losse.dyna.imagination import COMPARED, Imagination
from losse.dyna.search import Visited
from losse.world import WorldModel
from tests.dyna.agents import Line, small


class Watched(WorldModel):
    """Remembers what it was told, and always imagines a move of 0.25 with a reward of 7."""

    def __init__(self, *spaces):
        super().__init__(*spaces)
        self.told = []

    def update(self, *columns):
        super().update(*columns)
        self.told.append(columns)

    def _learn(self, states, actions, targets):
        pass

    def _predict(self, states, actions):
        self.asked = states, actions
        targets = np.zeros((len(states), self._n_targets))
        targets[:, 0], targets[:, 1] = 0.25, 7.0
        return targets

    def column(self, k):
        return np.concatenate([columns[k] for columns in self.told])


class Doubting(Watched):
    """Is less sure the further to the right it is, and ``surprise`` less after the first look."""

    has_std = True
    surprise = 1.0

    def _predict_std(self, states, actions):
        targets = self._predict(states, actions)
        std = np.repeat(1.0 + states[:, :1], targets.shape[1], axis=1)
        if len(states) != COMPARED:
            std *= self.surprise
        return targets, std


def watched(name="stable_baselines3.DQN", env=None, **options):
    env = env or Line("DQN" not in name)
    model = Watched(env.observation_space, env.action_space)
    return small(name, env, world_model=model, **options), model


def is_imagined(samples):
    return samples.rewards.numpy().reshape(-1) == 7.0


def test_an_unbound_buffer_is_an_ordinary_one_and_says_so():
    agent = DQN(
        "MlpPolicy",
        Line(),
        learning_starts=10,
        replay_buffer_class=DynaReplayBuffer,
        replay_buffer_kwargs={"planning_steps": 2},
    )
    with pytest.warns(UserWarning, match="no world model.*load_run.*DynaCallback") as warned:
        agent.learn(40)
    assert len(warned) == 1
    assert agent.replay_buffer.meter.imagined_rows == 0
    assert agent.replay_buffer.meter.real_rows > 0


def test_a_model_that_is_bound_later_learns_what_was_collected():
    agent = DQN("MlpPolicy", Line(), buffer_size=60, replay_buffer_class=DynaReplayBuffer)
    with pytest.warns(UserWarning, match="no world model"):
        agent.learn(40)
    model = Watched(agent.observation_space, agent.action_space)
    agent.replay_buffer.bind(agent, model)
    agent.replay_buffer.flush()
    assert np.array_equal(model.column(0), agent.replay_buffer.observations[:40, 0])


def test_a_loaded_agent_learns_without_its_model(tmp_path):
    small().learn(40).save(tmp_path / "agent.zip")
    agent = DQN.load(tmp_path / "agent.zip", env=Line())
    with pytest.warns(UserWarning, match="no world model"):
        agent.learn(40, reset_num_timesteps=False)
    assert agent.num_timesteps == 80
    agent = DQN.load(tmp_path / "agent.zip", env=Line())
    agent.learn(40, callback=DynaCallback("losse"))
    assert agent.replay_buffer.world_model.n_transitions == 40
    assert agent.replay_buffer.meter.imagined_rows > 0


def test_minibatches_alternate_when_drawn_one_by_one():
    agent, _ = watched(planning_steps=2)
    agent.learn(40)
    buffer = agent.replay_buffer
    buffer.end_training_call()
    kinds = [is_imagined(buffer.sample(8)) for _ in range(6)]
    assert [kind.all() for kind in kinds] == [False, True, True, False, True, True]
    assert [kind.any() for kind in kinds] == [False, True, True, False, True, True]


def test_minibatches_alternate_when_drawn_at_once():
    agent, _ = watched(planning_steps=2)
    agent.learn(40)
    agent.replay_buffer.end_training_call()
    kinds = is_imagined(agent.replay_buffer.sample(6 * 8)).reshape(6, 8)
    assert kinds.all(axis=1).tolist() == [False, True, True, False, True, True]
    assert not kinds[[0, 3]].any()


def test_a_share_is_kept_in_every_minibatch():
    agent, _ = watched(planning_steps=2, real_share=0.25)
    agent.learn(40)
    kinds = is_imagined(agent.replay_buffer.sample(5 * 8)).reshape(5, 8)
    assert (kinds.sum(axis=1) == 6).all()


def test_all_imagined_rows_of_a_training_call_are_computed_together():
    agent, model = watched(planning_steps=2)
    agent.learn(40)
    agent.replay_buffer.end_training_call()
    agent.replay_buffer.sample(8)
    agent.replay_buffer.sample(8)
    assert len(model.asked[0]) == 16


@pytest.mark.parametrize("name", ["stable_baselines3.SAC", "sbx.SAC"])
def test_a_pool_gets_rows_after_each_update_and_drops_the_oldest(name):
    options = {"pool_steps": 20, "pool_rows": 3, "update_every": 5, "real_share": 0.25}
    agent, model = watched(name, planning_steps=2, learning_starts=10, **options)
    asked = []
    predict = model._predict
    model._predict = lambda states, actions: asked.append(len(states)) or predict(states, actions)
    agent.learn(60)
    buffer = agent.replay_buffer
    # Beside the errors of 5 rows each and of one sequence of 5, 15 rows at a time: 3 for each of 5
    # real steps.
    assert set(asked) == {1, 5, 15}
    assert asked.count(15) == 10
    assert len(buffer._pool) == 20 * 3
    kinds = is_imagined(buffer.sample(4 * 8)).reshape(4, 8)
    assert (kinds.sum(axis=1) == 6).all()
    copy = pickle.loads(pickle.dumps(buffer))
    before, after = buffer._pool.state(), copy._pool.state()
    assert all(np.array_equal(before["columns"][k], after["columns"][k]) for k in after["columns"])


def test_rows_are_kept_for_continuous_actions_only_unless_told():
    assert watched("stable_baselines3.SAC")[0].replay_buffer.options.pool_steps == 1000
    assert watched("stable_baselines3.DQN")[0].replay_buffer.options.pool_steps == 0
    agent, _ = watched("stable_baselines3.DQN", planning_steps=2, pool_steps=10, pool_rows=4)
    agent.learn(40)
    agent.replay_buffer.end_training_call()
    assert not is_imagined(agent.replay_buffer.sample(8)).any()  # one real minibatch comes first
    assert is_imagined(agent.replay_buffer.sample(8)).all()


def test_a_horizon_grows_along_its_schedule():
    agent, _ = watched("stable_baselines3.SAC", horizon=(20, 40, 1, 5), pool_rows=10)
    agent.learn(40)
    assert agent.replay_buffer.options.horizon_at(30) == 3


@pytest.mark.parametrize("horizon", [1, 5])
def test_imagination_ends_where_the_model_is_less_sure_than_lately(horizon):
    line = Line()
    model = Doubting(line.observation_space, line.action_space)
    agent = small(env=line, world_model=model, exploration_initial_eps=1.0, horizon=horizon)
    agent.learn(200)
    buffer = agent.replay_buffer
    visited = Visited(buffer, agent, None, np.random.default_rng(0))

    def imagined(share):
        options = replace(buffer.options, sure_share=share)
        return Imagination(agent, model, options).imagine(visited, 400)

    everywhere, near = imagined(None), imagined(0.5)
    places = buffer.observations[:200, 0, 0]
    assert everywhere.obs.max() > np.quantile(places, 0.9)
    assert np.quantile(places, 0.3) < near.obs.max() < np.quantile(places, 0.7)
    assert len(near) == 400
    assert not near.terminated.any()
    model.surprise = 1e6
    nowhere = imagined(1.0)
    assert len(nowhere) == 400
    assert np.isin(nowhere.obs, places).all()  # single steps from visited states


def test_only_models_that_know_how_sure_they_are_can_be_asked():
    with pytest.raises(
        ValueError, match=r"sure_share=0\.9 needs .* and Watched does not: use Losse"
    ):
        watched(sure_share=0.9)
    agent = small(sure_share=0.9, horizon=3).learn(60)
    assert agent.replay_buffer.meter.imagined_rows > 0


def test_the_model_learns_true_next_observations_and_terminations():
    agent, model = watched(env=Line(limit=6), exploration_initial_eps=1.0)
    agent.learn(100)
    obs, actions, rewards, next_obs, terminated = map(model.column, range(5))
    assert len(obs) == 100
    length = np.where(actions == 1, 2.0, -1.0)
    assert np.allclose(next_obs[:, 0], np.clip(obs[:, 0] + length, 0, 10), atol=1e-5)
    assert np.allclose(rewards, next_obs[:, 0] - obs[:, 0], atol=1e-5)
    # Episodes are cut off after 6 steps, which is no termination; the end of the line is one.
    assert np.array_equal(terminated, next_obs[:, 0] >= 10)
    assert agent.replay_buffer.dones.sum() > terminated.sum()


def test_the_model_sees_actions_in_the_environments_units():
    agent, model = watched("stable_baselines3.SAC")
    agent.learn(60)
    obs, actions, _, next_obs, _ = map(model.column, range(5))
    assert actions.min() >= 0
    assert actions.max() > 1.5
    inside = (next_obs[:, 0] > 0) & (next_obs[:, 0] < 10)
    assert np.allclose((obs + actions - 1)[inside], next_obs[inside], atol=1e-4)
    imagined = agent.replay_buffer.sample(8)
    assert np.abs(imagined.actions.numpy()).max() <= 1.0


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_imagined_actions_are_greedy_for_a_share_of_rows(share):
    agent, model = watched(greedy_share=share, planning_steps=50, batch_size=20)
    agent.learn(40)
    agent.replay_buffer.end_training_call()
    agent.replay_buffer.sample(40)
    states, actions = model.asked
    greedy, _ = agent.predict(states.astype(np.float32), deterministic=True)
    assert np.mean(actions == greedy) == pytest.approx(share + (1 - share) / 2, abs=0.06)


def test_with_normalisation_the_model_sees_raw_data_and_the_agent_normalised():
    env = VecNormalize(DummyVecEnv([Line]))
    model = Watched(env.observation_space, env.action_space)
    agent = small(env=env, world_model=model)
    agent.learn(80)
    assert model.column(0).max() > 4
    assert np.abs(model.column(2)).max() == pytest.approx(2.0, abs=1e-5)
    samples = agent.replay_buffer.sample(24, env=env)
    expected = env.normalize_reward(np.array([7.0]))
    imagined = np.isclose(samples.rewards.numpy()[:, 0], expected)
    assert imagined.sum() == 16
    moved = env.normalize_obs(np.array([[5.25]])) - env.normalize_obs(np.array([[5.0]]))
    change = (samples.next_observations - samples.observations).numpy()[imagined]
    assert np.median(change) == pytest.approx(moved.item(), rel=1e-3)


def test_pickles_without_agent_and_model_and_without_empty_places():
    agent, _ = watched(buffer_size=100_000)
    agent.learn(40)
    data = pickle.dumps(agent.replay_buffer)
    assert len(data) < 20_000
    again = pickle.loads(data)
    assert again.observations.shape == (100_000, 1, 1)
    assert np.array_equal(again.observations, agent.replay_buffer.observations)
    assert again.world_model is None
    again.sample(8)
    assert again.meter.imagined_rows == agent.replay_buffer.meter.imagined_rows


def test_without_planning_all_rows_are_real():
    for method, steps in (("model-free", 1), ("model-free-matched", 3)):
        agent = small(world_model=method).learn(60)
        assert agent.gradient_steps == steps
        assert agent.replay_buffer.meter.imagined_rows == 0
        assert agent.replay_buffer.world_model is None
        assert agent._n_updates == steps * len(range(24, 61, 4))


def test_every_transition_is_learned_once_also_after_a_wrap():
    agent, model = watched(buffer_size=30, update_every=7)
    agent.learn(96)
    agent.replay_buffer.flush()
    obs, next_obs = model.column(0), model.column(3)
    assert len(obs) == 96
    # Each step begins where the one before ended, unless an episode began.
    assert (np.isclose(obs[1:, 0], next_obs[:-1, 0]) | (obs[1:, 0] < 1)).all()


def test_the_model_finds_what_it_has_learned_in_the_buffer():
    agent, model = watched(buffer_size=60)
    agent.learn(60)
    for found, told in zip(model.past(60), map(model.column, range(5)), strict=True):
        assert np.array_equal(found, told)
    assert model.past(50) is None
    agent.learn(20, reset_num_timesteps=False)
    assert model.n_transitions == 80
    assert model.past(80) is None  # the buffer has lost the first of them


def test_bad_arguments():
    spaces_ = Line().observation_space, Line().action_space
    for wrong, error in (
        ({"planning_steps": -1}, ValueError),
        ({"real_share": 1.5}, ValueError),
        ({"real_share": "half"}, ValueError),
        ({"real_share": None}, TypeError),
        ({"search_control": "magic"}, ValueError),
        ({"horizon": 0}, ValueError),
        ({"horizon": (5, 5, 1, 2)}, ValueError),
        ({"horizon": (0, 5, 0, 2)}, ValueError),
        ({"horizon": (1, 2)}, TypeError),
        ({"sure_share": 1.5}, ValueError),
        ({"sure_share": True}, TypeError),
        ({"pool_steps": -1}, ValueError),
        ({"pool_steps": "long"}, TypeError),
        ({"pool_rows": 0}, ValueError),
        ({"update_every": 200}, ValueError),
        ({"planing_steps": 3}, TypeError),
        ({"optimize_memory_usage": True}, ValueError),
    ):
        with pytest.raises(error, match=next(iter(wrong))):
            DynaReplayBuffer(100, *spaces_, **wrong)
    buffer = SAC("MlpPolicy", Line(True), replay_buffer_class=DynaReplayBuffer).replay_buffer
    with pytest.raises(ValueError, match="action_space"):
        buffer.bind(DQN("MlpPolicy", Line()), Watched(*spaces_))
