"""Presets: tuned trainings that give way to explicit options."""

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

import gymnasium

from losse.cli.train.command import Settings
from losse.dyna import make_dyna, preset
from losse.dyna.agents import agent_class, require_suitable_agent
from losse.dyna.options import Training
from losse.dyna.presets import MBPO, PRESETS


@pytest.mark.parametrize("env", PRESETS)
def test_every_preset_makes_an_agent(env):
    tuned = preset(env)
    try:
        made = tuned.make_env()
    except gymnasium.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    require_suitable_agent(tuned.agent, made.action_space)
    agent = make_dyna(agent_class(tuned.agent, "sb3"), made, **tuned.arguments())
    assert agent.learning_rate == tuned.agent_options["learning_rate"]
    assert agent.gradient_steps == 1 + tuned.dyna.planning_steps
    assert agent.replay_buffer.world_model is not None


def test_the_matched_control_is_the_same_agent_without_a_model():
    for env in PRESETS:
        tuned, control = preset(env), preset(env, "model-free-matched")
        assert (control.agent_options, control.dyna) == (tuned.agent_options, tuned.dyna)
        assert control.arguments()["model_options"] is None


def test_an_environment_without_a_preset_is_named():
    with pytest.raises(ValueError, match=r"env='Pong-v0' has no tuned preset: .*CartPole-v1"):
        preset("Pong-v0")


def read(*arguments):
    return Settings.read(arguments)


def test_the_command_line_takes_the_preset_unless_it_is_told_otherwise():
    assert read("--env", "Pendulum-v1").training == preset("Pendulum-v1")
    assert read("--env", "Pendulum-v1", "--preset", "none").training == Training(env="Pendulum-v1")
    assert read("--env", "FrozenLake-v1").training == Training(env="FrozenLake-v1")


def test_explicit_options_win():
    given = read(
        *("--env", "MountainCar-v0", "--steps", "70", "--learning-rate", "0.5"),
        *("--no-rescale-obs", "--planning-steps", "3", "--model", "online"),
    ).training
    tuned = preset("MountainCar-v0")
    assert (given.steps, given.rescale_obs, given.dyna.planning_steps) == (70, False, 3)
    assert given.agent_options == {**tuned.agent_options, "learning_rate": 0.5}
    # Also those that are the plain defaults.
    assert read("--env", "CartPole-v1", "--steps", "15000").training.steps == 15_000
    assert read("--env", "MountainCar-v0", "--rescale-obs").training == tuned


def test_what_is_chosen_is_said():
    said = read("--env", "Pendulum-v1", "--steps", "70").said()
    assert said.startswith("Preset for Pendulum-v1 (--preset none: plain defaults): agent sac, ")
    assert "steps 70" in said
    assert "learning_rate 0.001" in said
    assert read("--env", "FrozenLake-v1").said() == ""
    other = read("--env", "Pendulum-v1", "--agent", "td3")
    assert other.training == Training(env="Pendulum-v1", agent="td3")
    assert other.said() == "The preset for Pendulum-v1 is for sac: td3 has plain defaults."


def test_the_settings_of_mbpo_are_there_for_its_tasks():
    tuned = read("--env", "Humanoid-v5", "--preset", "mbpo").training
    assert tuned == preset("Humanoid-v5", kind="mbpo") == MBPO["Humanoid-v5"]
    assert (tuned.dyna.planning_steps, tuned.dyna.horizon) == (19, (20_000, 300_000, 1, 25))
    assert tuned.agent_options["learning_starts"] == 5000
    assert MBPO["InvertedPendulum-v5"].agent_options["learning_starts"] == 500
    with pytest.raises(ValueError, match=r"'CartPole-v1' has no mbpo preset: .*HalfCheetah-v5"):
        read("--env", "CartPole-v1", "--preset", "mbpo")
    with pytest.raises(ValueError, match="kind='fast' is not known: use one of tuned, mbpo"):
        preset("Hopper-v5", kind="fast")


@pytest.mark.parametrize(
    ("env", "width"), [("Ant-v5", 27), ("Humanoid-v5", 45), ("InvertedDoublePendulum-v5", 9)]
)
def test_bodies_are_seen_by_positions_and_velocities(env, width):
    pytest.importorskip("mujoco")
    tuned = preset(env, kind="mbpo")
    made = tuned.make_env()
    assert made.observation_space.shape == (width,)
    agent = make_dyna(agent_class("sac", "sb3"), made, **tuned.arguments())
    assert agent.target_entropy == tuned.agent_options["target_entropy"]


def test_options_of_agent_model_and_environment_can_be_given():
    given = read(
        *("--env", "Hopper-v5", "--learning-starts", "70", "--target-entropy", "-2"),
        *("--model-options", "regressor=paper", "seed=3"),
        *("--env-options", "reset_noise_scale=0.1"),
    ).training
    options = preset("Hopper-v5").agent_options | {"learning_starts": 70, "target_entropy": -2.0}
    assert given.agent_options == options
    assert given.model_options == {"regressor": "paper", "seed": 3}
    assert given.make_env().spec.kwargs["reset_noise_scale"] == 0.1
    with pytest.raises(ValueError, match=r"--model-options 'paper' must be .*write name=value"):
        read("--env", "Hopper-v5", "--model-options", "paper")
