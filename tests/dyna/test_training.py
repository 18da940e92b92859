"""One training: what it returns, and that it goes on where it was stopped."""

import json

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse.dyna import DynaOptions, load_run
from losse.dyna.checkpoint import latest_checkpoint
from losse.dyna.evaluation import EVALUATION_SEED, mean_return
from losse.dyna.options import Training
from losse.dyna.progress import COMPILING, EVALUATING, MAKING, TRAINING, TrainingObserver
from losse.dyna.training import environments, train
from losse.envs.terminations import known_termination
from tests.dyna.agents import Line, small

SMALL = {"policy_kwargs": {"net_arch": [8, 8]}, "batch_size": 8}


def training(**options):
    defaults = {
        "env": "CartPole-v1",
        "backend": "sb3",
        "model": "model-free-matched",
        "steps": 200,
        "planning_steps": 1,
        "eval_every": 50,
        "eval_episodes": 2,
        "agent_options": SMALL,
    }
    dyna, others = DynaOptions.taken_from(defaults | options)
    return Training(dyna=dyna, **others)


def test_a_training_returns_its_curve():
    class Observer(TrainingObserver):
        def evaluated(self, progress):
            seen.append(progress)

    seen = []
    result = train(training(), observer=Observer())
    assert [step for step, _ in result.curve] == [50, 100, 150, 200]
    assert all(8 <= value <= 500 for _, value in result.curve)
    assert result.score == pytest.approx(sum(value for _, value in result.curve) / 4)
    assert [len(one.curve) for one in seen] == [1, 2, 3, 4]
    assert result.first_end < 100
    assert result.update_seconds == 0
    assert result.gradient_steps == 50


@pytest.mark.parametrize(
    ("steps", "every", "evaluated"),
    [(60, 100, [60]), (120, 100, [100, 120]), (98, 98, [98])],  # the last collects 100 steps
)
def test_there_is_an_evaluation_at_the_end_in_any_case(steps, every, evaluated):
    result = train(training(steps=steps, eval_every=every))
    assert [step for step, _ in result.curve] == evaluated


def test_with_a_model_there_are_errors_and_times():
    result = train(training(model="losse"))
    assert [step for step, _ in result.errors] == [100, 150, 200]  # before: nothing learned
    assert [step for step, _ in result.later_errors] == [100, 150, 200]
    assert result.update_seconds > 0
    assert result.imagination_seconds > 0
    assert 0 < result.model_share < 1


def test_an_observer_hears_of_stages_before_they_begin_and_of_steps():
    heard = []

    class Observer(TrainingObserver):
        def stage(self, name):
            heard.append(name)

        def stepped(self, steps):
            heard.append(steps)

    train(training(steps=120, eval_every=120, model="losse"), observer=Observer())
    stages = [one for one in heard if isinstance(one, str)]
    assert stages[0] == MAKING
    assert heard.index(COMPILING) == heard.index(25) - 1  # the model's first update
    first_gradient_step = heard.index(104)  # after learning_starts, when a rollout is complete
    assert heard[first_gradient_step + 1] == COMPILING
    assert [stages.count(name) for name in (COMPILING, EVALUATING)] == [2, 1]
    assert heard[heard.index(105) - 1] == TRAINING
    assert [one for one in heard if isinstance(one, int)] == list(range(1, 121))


def test_the_same_seed_gives_the_same_curve():
    assert train(training()).curve == train(training()).curve
    assert train(training(seed=1)).curve != train(training()).curve


def test_evaluations_normalise_observations_as_training_does_but_not_rewards():
    env = VecNormalize(DummyVecEnv([Line]))
    agent = small(env=env, world_model="model-free").learn(60)
    held_out = DummyVecEnv([Line] * 4)
    value = mean_return(agent, held_out, seed=0)
    held_out.seed(EVALUATION_SEED)
    obs, going, returns = held_out.reset(), np.ones(4, dtype=bool), np.zeros(4)
    while going.any():
        actions, _ = agent.predict(env.normalize_obs(obs), deterministic=True)
        obs, rewards, dones, _ = held_out.step(actions)
        returns += rewards * going
        going &= ~dones
    assert value == pytest.approx(returns.mean(), rel=1e-6)
    assert env.training
    assert env.norm_reward


def test_a_stopped_training_goes_on(tmp_path):
    class StopError(Exception):
        pass

    class Stop(TrainingObserver):
        def evaluated(self, progress):
            if progress.steps >= 150:
                raise StopError

    with pytest.raises(StopError):
        train(training(), folder=tmp_path, checkpoint_every=60, observer=Stop())
    result = train(training(), folder=tmp_path, resume=True)
    assert [step for step, _ in result.curve] == [50, 100, 150, 200]
    assert result.gradient_steps == 50
    # Nothing is left to do, and the result is still there.
    assert train(training(), folder=tmp_path, resume=True) == result
    longer = train(training(steps=250), folder=tmp_path, resume=True)
    assert [step for step, _ in longer.curve] == [50, 100, 150, 200, 250]


def test_a_saved_run_is_not_the_result_of_a_shorter_one(tmp_path):
    train(training(steps=98), folder=tmp_path)
    done = train(training(steps=98), folder=tmp_path, resume=True)
    assert done.steps == 100
    with pytest.raises(ValueError, match="steps=60 are fewer than the 100"):
        train(training(steps=60), folder=tmp_path, resume=True)


def test_other_options_are_not_mixed_with_a_saved_run(tmp_path):
    train(training(), folder=tmp_path)
    with pytest.raises(ValueError, match="planning_steps=2"):
        train(training(planning_steps=2), folder=tmp_path, resume=True)


def test_observations_can_be_rescaled():
    env, held_out = environments(training(env="Acrobot-v1", rescale_obs=True))
    for one in (env, held_out):
        assert one.observation_space.low.tolist() == [-1] * 6
        assert one.observation_space.high.tolist() == [1] * 6
        assert abs(one.reset()).max() <= 1
    with pytest.raises(ValueError, match="rescale_obs=True needs observations with finite bounds"):
        environments(training(env="CartPole-v1", rescale_obs=True))


def test_only_training_episodes_start_anywhere():
    options = {"env": "MountainCar-v0", "rescale_obs": True, "n_envs": 20, "eval_episodes": 20}
    env, held_out = environments(training(exploring_starts=True, **options))
    usual, same = environments(training(**options))
    for one in (env, held_out, usual, same):
        one.seed(0)
    starts, evaluated, ordinary = env.reset(), held_out.reset(), usual.reset()
    assert starts.std(axis=0).min() > 0.3  # positions and velocities, in [-1, 1]
    assert abs(starts).max() <= 1
    assert ordinary.std(axis=0)[1] == 0  # at rest
    assert evaluated.tolist() == same.reset().tolist()
    env.seed(0)
    assert env.reset().tolist() == starts.tolist()


def test_only_training_episodes_are_cut_off():
    env, held_out = environments(training(env="MountainCar-v0", train_limit=7))
    for one, limit in ((env, 7), (held_out, 200)):
        one.reset()
        lengths = [k for k in range(1, 15) if one.step([1] * one.num_envs)[2].any()]
        assert lengths == list(range(limit, 15, limit))


def test_exploring_starts_need_a_known_environment():
    with pytest.raises(ValueError, match="do without exploring starts"):
        train(training(exploring_starts=True))


def test_an_oracle_is_right_from_the_start_and_comes_back(tmp_path):
    options = {"model": "oracle", "env": "MountainCar-v0", "rescale_obs": True, "steps": 150}
    result = train(training(**options), folder=tmp_path)
    assert [step for step, _ in result.errors] == [100, 150]
    assert max(error for _, error in result.errors) < 1e-5
    assert result.imagination_seconds > 0
    longer = train(training(**options | {"steps": 200}), folder=tmp_path, resume=True)
    assert longer.errors[:2] == result.errors
    assert longer.later_errors[:2] == result.later_errors
    assert max(error for _, error in longer.later_errors) < 1e-4
    assert max(error for _, error in longer.errors) < 1e-5


def test_an_oracle_needs_a_known_environment():
    with pytest.raises(ValueError, match="'FrozenLake-v1' are not known"):
        train(training(model="oracle", env="FrozenLake-v1"))


def test_a_known_termination_is_known_to_the_model_also_after_it_was_saved(tmp_path):
    known = {"model": "losse", "termination": "known", "steps": 100, "eval_every": 100}
    train(training(**known), folder=tmp_path)
    agent = load_run(DQN, tmp_path, "CartPole-v1", termination=known_termination("CartPole-v1"))
    fallen = np.array([[0.0, 0.0, 0.5, 0.0]])
    assert agent.replay_buffer.world_model.step(fallen, [0])[2].all()
    longer = train(training(**known | {"steps": 120}), folder=tmp_path, resume=True)
    assert longer.steps == 120
    with pytest.raises(ValueError, match="'MountainCar-v0' end is not known"):
        training(**known | {"env": "MountainCar-v0"})


def test_a_run_that_is_older_than_an_option_goes_on(tmp_path):
    train(training(steps=60, eval_every=60), folder=tmp_path)
    notes = latest_checkpoint(tmp_path) / "notes.json"
    known = json.loads(notes.read_text())
    del known["training"]["reward"]
    notes.write_text(json.dumps(known))
    assert train(training(steps=80, eval_every=60), folder=tmp_path, resume=True).steps == 80


@pytest.mark.parametrize(
    ("env", "reward", "expected"),
    [("Pendulum-v1", "known", -0.001 * 4), ("HalfCheetah-v5", "partly-known", -0.1 * 6)],
)
def test_what_is_known_of_a_reward_is_known_to_the_model_also_after_it_was_saved(
    tmp_path, env, reward, expected
):
    pytest.importorskip("mujoco")
    dyna = {"pool_steps": 0, "real_share": "alternate"}
    known = {
        "agent": "td3",
        "model": "losse",
        "reward": reward,
        "eval_episodes": 1,
        "eval_limit": 2,
    }
    options = {"env": env, "eval_every": 60, **dyna, **known}
    train(training(steps=60, **options), folder=tmp_path)
    longer = train(training(steps=80, **options), folder=tmp_path, resume=True)
    assert longer.steps == 80
    rules = training(**options).rules()
    model = load_run(TD3, tmp_path, env, **rules).replay_buffer.world_model
    flat = np.zeros((1, model.observations.width))
    flat[0, 0] = 1.0  # an upright pendulum
    action = model.action_space.high[None]
    said = model.reward.part if reward == "partly-known" else model.reward
    assert said(flat, action, flat) == pytest.approx([expected])
    assert model._n_targets == model.observations.width + 1 + (reward == "partly-known")
    with pytest.raises(ValueError, match="the reward of 'MountainCar-v0' is not known"):
        training(env="MountainCar-v0", model="losse", reward="known")


def test_options_are_plain():
    from losse.storage.jsonfile import plain

    assert json.loads(json.dumps(plain(training())))["agent_options"] == SMALL


def test_bad_arguments():
    with pytest.raises(ValueError, match="model='magic' is not known"):
        training(model="magic")
    with pytest.raises(ValueError, match="steps"):
        training(steps=0)
    with pytest.raises(ValueError, match="train_limit"):
        training(train_limit=0)
    with pytest.raises(ValueError, match="choose from: sac"):
        train(training(env="Pendulum-v1"))
    with pytest.raises(ValueError, match="choose from: dqn"):
        train(training(agent="sac"))


def test_agents_do_not_change_the_options_they_were_made_with():
    options = {"policy_kwargs": {"net_arch": [4]}, "learning_starts": 10}
    own = training(env="Pendulum-v1", agent="sac", steps=20, agent_options=options)
    train(own)
    assert own.agent_options == {"policy_kwargs": {"net_arch": [4]}, "learning_starts": 10}
