"""Tasks in sequence: each has its reward, its region and its rules for as long as it should."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import losse.envs
from losse.envs import Task, TaskSequence
from losse.envs.tasks import goal

assert losse.envs


def speed(obs, actions, next_obs):
    return next_obs[:, 2]


def pendulum(tasks, steps):
    return TaskSequence(gymnasium.make("Pendulum-v1"), tasks, steps)


def run(env, steps):
    """All steps with random actions, as (obs, action, next_obs, reward, truncated, info)."""
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    rows = []
    for _ in range(steps):
        action = env.action_space.sample()
        after, reward, terminated, truncated, info = env.step(action)
        rows.append((obs, action, after, reward, truncated, info))
        obs = env.reset()[0] if terminated or truncated else after
    return rows


@pytest.mark.parametrize(
    "env",
    [
        pendulum([Task("a"), Task("b", reward=speed, rules={"g": 3.0})], steps=10_000),
        pendulum([Task("a", reward=speed, termination=lambda o, a, n: n[:, 0] > 0.9)], steps=1),
        TaskSequence(gymnasium.make("losse/Gridworld-v0"), [goal("here", (0.2, 0.3))], steps=5),
    ],
    ids=["two", "ends", "gridworld"],
)
def test_the_checkers_pass(env):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(different from the unwrapped|normalize).*")
        check_env(env, skip_render_check=True)
        check_env_sb3(env, skip_render_check=True)


def test_tasks_change_after_their_steps_and_say_so():
    env = pendulum([Task("own"), Task("speed", reward=speed), Task("still")], steps=[30, 250, 5])
    rows = run(env, 320)
    numbers = [row[-1]["task"] for row in rows]
    assert numbers == [0] * 30 + [1] * 250 + [2] * 40
    assert [i for i, row in enumerate(rows) if row[4]] == [29, 229, 279]  # 200 steps by its limit
    assert rows[30][-1]["task_name"] == "speed"
    for obs, action, after, reward, _, info in rows:
        angle = np.arctan2(obs[1], obs[0])
        own = -(angle**2 + 0.1 * obs[2] ** 2 + 0.001 * action[0] ** 2)
        assert reward == pytest.approx(after[2] if info["task"] == 1 else own, abs=1e-5)


def test_rules_hold_for_their_task_only():
    env = pendulum([Task("a"), Task("b", rules={"g": 0.0, "m": 2.0}), Task("c")], steps=10)
    seen = {}
    for _ in range(3):
        env.reset(seed=0)
        seen[env.task] = (env.unwrapped.g, env.unwrapped.m)
        for _ in range(10):
            env.step(np.zeros(1, np.float32))
    assert seen == {0: (10.0, 1.0), 1: (0.0, 2.0), 2: (10.0, 1.0)}


def test_regions_and_goals_of_gridworld():
    tasks = [
        goal("left", (0.3, 0.79), start=(0.3, 0.7)),
        goal("right", (0.89, 0.2), start=(0.8, 0.2)),
    ]
    env = TaskSequence(gymnasium.make("losse/Gridworld-v0", noise=0.0), tasks, steps=[4, 100])
    obs, info = env.reset(seed=0)
    np.testing.assert_allclose(obs, [0.3, 0.7])
    up, right = 0, 1
    assert env.step(up)[1:4] == (0.0, True, False)
    obs, _ = env.reset(options={"start": (0.1, 0.1)})  # on top of the task's
    np.testing.assert_allclose(obs, [0.1, 0.1], rtol=1e-6)
    assert [env.step(right)[1:4] for _ in range(3)][-1] == (-1.0, False, True)
    obs, info = env.reset()
    assert info == {"task": 1, "task_name": "right"}
    np.testing.assert_allclose(obs, [0.8, 0.2])
    assert env.step(right)[2]


def test_the_usual_goal_means_nothing_where_another_is_set():
    env = TaskSequence(gymnasium.make("losse/Gridworld-v0", noise=0.0), [goal("a", (0.1, 0.1))], 50)
    env.reset(options={"start": (0.94, 0.97)})
    assert env.step(1)[1:4] == (-1.0, False, False)


@pytest.mark.parametrize(
    ("tasks", "steps", "message"),
    [
        ([], 5, "tasks is empty"),
        ([Task("a")], 0, "steps=0"),
        ([Task("a")], [5, 5], r"steps=\[5, 5\]"),
        ([Task("a", rules={"gravity": 1.0})], 5, "rule 'gravity'"),
    ],
)
def test_bad_arguments_are_refused(tasks, steps, message):
    with pytest.raises(ValueError, match=message):
        pendulum(tasks, steps)


def test_a_reward_of_the_wrong_shape_is_refused():
    env = pendulum([Task("bad", reward=lambda obs, actions, next_obs: next_obs)], 5)
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"reward of task 'bad' returned an array of shape \(1, 3\)"
    ):
        env.step(np.zeros(1, np.float32))
