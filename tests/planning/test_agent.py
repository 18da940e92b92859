"""The planning agent learns, plans, is saved whole, and keeps what it knows whatever happens."""

import os

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse import FTLRegressor, LosseEncoder
from losse.planning import CEM, PlanningAgent
from losse.storage import ArchiveError
from losse.world import LosseWorldModel, NeuralWorldModel
from tests.planning.worlds import Diverging, Line, LinearModel

QUICK = {"horizon": 5, "n_samples": 30, "n_iterations": 2}


def agent(env=None, **options):
    chosen = {"seed": 0, "learning_starts": 40}
    if "planner" not in options:
        chosen["planner_options"] = QUICK
    if "world_model" not in options:
        small = FTLRegressor(LosseEncoder(5, n_bins=8), ridge=1e-5)
        chosen["model_options"] = {"regressor": small}
    return PlanningAgent(env or Line(), **chosen | options)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """An agent that has learned 130 steps, 5 of which its model has not learned yet, and a file."""
    path = tmp_path_factory.mktemp("agent") / "agent.losse"
    one = agent()

    def save(local, everything):
        if one.num_timesteps == 130:
            one.save(path)
        return one.num_timesteps < 130

    one.learn(200, callback=save)
    return one, path


def test_it_learns_to_come_home():
    one = agent().learn(150)
    mean, _ = evaluate_policy(one, DummyVecEnv([Line]), n_eval_episodes=5, warn=False)
    assert mean > -2.6  # of random starts; staying where one is gains -10, the best about -1.5
    assert one.world_model.n_transitions == 150
    assert one.meter.decisions > 110


def test_discrete_actions_by_beam_search():
    one = agent(Line(discrete=True), planner="beam", planner_options={"horizon": 4, "width": 30})
    one.learn(150)
    mean, _ = evaluate_policy(one, DummyVecEnv([lambda: Line(discrete=True)]), 5, warn=False)
    assert mean > -3.5


def test_a_new_reward_is_a_new_task():
    one = agent().learn(150)
    one.set_reward(lambda obs, actions, next_obs: -np.abs(next_obs[:, 0] - 0.6))
    env, plans = Line(), None
    obs, _ = env.reset(seed=5)
    for _ in range(15):
        action, plans = one.predict(obs, plans)
        obs, *_ = env.step(action)
    assert obs[0] == pytest.approx(0.6, abs=0.1)
    assert one.world_model.n_transitions == 150


def test_transitions_are_what_happened():
    seen = []

    class Recorder(LosseWorldModel):
        def update(self, *columns):
            seen.append([np.asarray(column) for column in columns])
            super().update(*columns)

    env = Line(goal=0.5, limit=7)
    small = FTLRegressor(LosseEncoder(5, n_bins=8), ridge=1e-5)
    model = Recorder(env.observation_space, env.action_space, regressor=small)
    agent(env, world_model=model, learning_starts=300, seed=1).learn(300)
    obs, actions, rewards, next_obs, terminated = map(np.concatenate, zip(*seen, strict=True))
    expected = np.clip(obs + 0.2 * actions, -1, 1)  # never the first of the next episode
    np.testing.assert_allclose(next_obs, expected, atol=1e-6)
    np.testing.assert_allclose(rewards, -np.abs(next_obs[:, 0]), atol=1e-6)
    np.testing.assert_array_equal(terminated, next_obs[:, 0] > 0.5)  # not where time was up
    assert 0 < terminated.sum() < 300 // 7


def test_several_environments_are_learned_from_side_by_side():
    one = agent(DummyVecEnv([Line, Line, Line])).learn(120)
    assert one.num_timesteps == one.world_model.n_transitions == 120
    actions, plans = one.predict(np.zeros((3, 1), np.float32))
    assert actions.shape == (3, 1)
    assert len(plans) == 3


def test_predict_repeats_itself_and_takes_one_or_many(learned):
    one, _ = learned
    obs = np.float32([0.3])
    single, plans = one.predict(obs)
    batch, _ = one.predict(obs[None])
    assert single.shape == (1,)
    np.testing.assert_array_equal(single, batch[0])
    np.testing.assert_array_equal(single, one.predict(obs)[0])
    _, new = one.predict(obs, plans)
    assert new[0].age == 1
    again, fresh = one.predict(obs, plans, episode_start=np.array([True]))
    assert fresh[0].age == 0
    np.testing.assert_array_equal(again, single)
    with pytest.raises(ValueError, match="state has 1 plans for 2 observations"):
        one.predict(np.zeros((2, 1), np.float32), plans)


def test_a_loaded_agent_predicts_the_same(learned):
    one, path = learned
    loaded = PlanningAgent.load(path, Line())
    assert loaded.num_timesteps == 130
    for place in (-0.8, 0.1, 0.9):
        obs = np.float32([place])
        theirs, plans = loaded.predict(obs)
        mine, _ = PlanningAgent.load(path, Line()).predict(obs)
        np.testing.assert_array_equal(theirs, mine)
        np.testing.assert_array_equal(theirs, loaded.predict(obs)[0])
        assert plans[0].actions.shape == (5, 1)
    assert loaded.world_model.n_transitions + len(loaded.pending) == 130
    assert repr(loaded.planner) == repr(one.planner)


def test_saving_changes_nothing_and_loading_goes_on(learned, tmp_path):
    _, path = learned
    first, second = (PlanningAgent.load(path, Line()) for _ in range(2))
    second.save(tmp_path / "again")
    third = PlanningAgent.load(tmp_path / "again", Line())
    for one in (first, second, third):
        one.set_random_seed(7)
        one.learn(30, reset_num_timesteps=False)
        assert one.num_timesteps == 160
        assert one.world_model.n_transitions == 160
    obs = np.float32([0.4])
    np.testing.assert_array_equal(first.predict(obs)[0], second.predict(obs)[0])
    np.testing.assert_array_equal(first.predict(obs)[0], third.predict(obs)[0])


def test_functions_must_be_given_again(tmp_path):
    def reward(obs, actions, next_obs):
        return next_obs[:, 0]

    one = agent(reward=reward, termination="never", max_std=2.0, discount=0.9).learn(60)
    one.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="reward is missing"):
        PlanningAgent.load(tmp_path / "agent", Line())
    loaded = PlanningAgent.load(tmp_path / "agent", Line(), reward=reward)
    assert loaded.objective == one.objective
    assert PlanningAgent.load(tmp_path / "agent", Line(), reward=None).objective.reward is None


@pytest.mark.parametrize("method", ["online", "oracle"])
def test_other_models_are_saved_too(method, tmp_path):
    env = gymnasium.make("MountainCar-v0")
    options = {"planner": "beam", "planner_options": {"horizon": 3, "width": 9}}
    if method != "oracle":
        options["model_options"] = {"hidden": (8,)}
    one = agent(env, world_model=method, learning_starts=25, **options).learn(30)
    one.save(tmp_path / "agent")
    loaded = PlanningAgent.load(tmp_path / "agent", gymnasium.make("MountainCar-v0"))
    assert type(loaded.world_model) is type(one.world_model)
    obs, _ = env.reset(seed=0)
    np.testing.assert_array_equal(one.predict(obs)[0], loaded.predict(obs)[0])
    if method == "online":
        assert isinstance(one.world_model, NeuralWorldModel)


def test_a_damaged_file_is_refused(learned, tmp_path):
    _, path = learned
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(ArchiveError, match="damaged"):
        PlanningAgent.load(tmp_path / "damaged", Line())
    assert os.listdir(tmp_path) == ["damaged"]


def test_only_what_can_be_loaded_is_saved(tmp_path):
    class Own(CEM):
        pass

    with pytest.raises(TypeError, match=r"Own.* cannot be saved"):
        agent(planner=Own(3)).save(tmp_path / "agent")
    one = agent(LinearEnv(), world_model=LinearModel(-1, 1))
    with pytest.raises(TypeError, match=r"LinearModel.* cannot be saved"):
        one.save(tmp_path / "agent")
    assert not list(tmp_path.iterdir())


def test_callbacks_logger_and_tensorboard(tmp_path):
    evaluation = EvalCallback(DummyVecEnv([Line]), n_eval_episodes=1, eval_freq=60, warn=False)
    keep = CheckpointCallback(50, tmp_path / "kept", name_prefix="agent")
    one = agent(tensorboard_log=str(tmp_path / "board"))
    one.learn(120, callback=[evaluation, keep], progress_bar=False)
    assert evaluation.n_calls == 120
    assert np.isfinite(evaluation.last_mean_reward)
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == ["agent_100_steps.zip", "agent_50_steps.zip"]
    assert PlanningAgent.load(tmp_path / "kept" / kept[0], Line()).num_timesteps == 100
    events = next((tmp_path / "board" / "planning_1").glob("events*")).read_bytes()
    for name in (b"rollout/ep_rew_mean", b"planning/decision_ms", b"model/change_error"):
        assert name in events


def test_curiosity_sees_more():
    def visited(curiosity):
        one = agent(
            reward=lambda obs, actions, next_obs: np.zeros(len(obs)),
            curiosity=curiosity,
            learning_starts=10,
            update_every=10,
        )
        places = []
        one.learn(100, callback=lambda local, _: places.append(local["obs"][0, 0]) or True)
        return np.ptp(places)

    assert visited(1.0) > 1.8  # of 2
    assert visited(-1.0) < 1.8


class LinearEnv(gymnasium.Env):
    """The linear world as an environment, for models that cannot learn."""

    def __init__(self):
        model = LinearModel(-1, 1)
        self.observation_space, self.action_space = model.observation_space, model.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([0.5, 0.0])
        return self.state, {}

    def step(self, action):
        after, reward, _ = LinearModel(-1, 1).step(self.state[None], action[None])
        self.state = after[0]
        return self.state, float(reward[0]), False, False, {}


def test_a_model_that_diverges_ends_learning_but_nothing_is_lost(tmp_path):
    class Later(Diverging):
        """Diverges everywhere after 50 transitions."""

        def _learn(self, states, actions, targets):
            self.far = 0.0 if self.n_transitions + len(states) >= 50 else np.inf

    one = agent(LinearEnv(), world_model=Later(np.inf), learning_starts=30, update_every=25)
    with pytest.raises(FloatingPointError, match="diverged"):
        one.learn(200)
    assert one.num_timesteps == one.world_model.n_transitions == 50
    one.world_model = Later(np.inf)
    one.learn(20, reset_num_timesteps=False)
    assert one.num_timesteps == 70


def test_a_bad_reward_is_refused_and_the_old_one_stays(learned):
    one, _ = learned
    before, obs = one.objective, np.float32([0.5])
    action, _ = one.predict(obs)
    with pytest.raises(
        ValueError, match=r"the function reward returned an array of shape \(2, 1\)"
    ):
        one.set_reward(lambda obs, actions, next_obs: next_obs)
    with pytest.raises(TypeError, match="must be a function"):
        one.set_reward("far")
    with pytest.raises(ValueError, match="function termination"):
        one.set_reward(None, termination=lambda obs, actions, next_obs: True)
    assert one.objective is before
    np.testing.assert_array_equal(one.predict(obs)[0], action)


def test_a_reward_that_breaks_later_ends_learning_but_nothing_is_lost():
    def reward(obs, actions, next_obs):
        return np.zeros(len(obs)) if one.num_timesteps < 60 else np.zeros(3)

    one = agent()
    one.set_reward(reward)
    with pytest.raises(ValueError, match="the function reward returned"):
        one.learn(100)
    assert one.num_timesteps == one.world_model.n_transitions + len(one.pending) == 60
    one.set_reward(None)
    one.learn(20, reset_num_timesteps=False)
    assert one.world_model.n_transitions == 80


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"planner": "beam", "planner_options": {}}, TypeError, "BeamSearch cannot plan"),
        ({"planner": "mcts"}, ValueError, "planner='mcts' is not known"),
        ({"planner": CEM(), "planner_options": QUICK}, ValueError, "planner_options"),
        ({"planner_options": {"horizon": 0}}, ValueError, "horizon=0"),
        ({"planner_options": {"n_samples": 0}}, ValueError, "n_samples=0"),
        ({"world_model": "best"}, ValueError, "world_model='best' is not known"),
        ({"world_model": "oracle"}, ValueError, "not known"),
        ({"world_model": LinearModel()}, ValueError, "observation_space"),
        ({"learning_starts": -1}, ValueError, "learning_starts=-1"),
        ({"update_every": 0}, ValueError, "update_every=0"),
        ({"reward": lambda obs, actions, next_obs: 1.0}, ValueError, "function reward"),
        ({"value": lambda obs: obs}, ValueError, "function value"),
        ({"discount": 2.0}, ValueError, "discount=2.0"),
        ({"patience": 1.0}, TypeError, "patience"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        agent(**options)


def test_other_action_spaces_and_normalisation_are_refused():
    env = Line()
    env.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(TypeError, match="finite bounds"):
        agent(env)
    with pytest.raises(ValueError, match="VecNormalize"):
        agent(VecNormalize(DummyVecEnv([Line])))
