"""Tasks one after the other: what a planning agent can still do of those that are over.

In each of two worlds four tasks come in sequence. Each has a reward function of its own, by which
the agent plans, and leads to another part of the world. The model learns whatever happens, and is
not told where one task ends and the next begins. After each task the agent is tried on all four:

- **performance**: mean over the tasks, after the last of them;
- **forgetting**: how much worse it is at the earlier tasks than it was right after them;
- **zero-shot**: performance in tasks that are still to come, whose rewards were never used.

A performance is 0 for an agent that acts at random and 1 for one that plans in a Losse model which
has been trained on that task alone, for twice as long. Worlds:

- `compass`: the Gridworld without its barrier, in whose quarters the actions are turned: what
  "right" does in one, "up" does in the next. A task is a place to go to within a quarter.
- `pendulum`: Gymnasium's, to be held upright, held at the left, spun one way and spun the other.

All methods have the same planner, and each task begins with random actions. Networks have two
layers of 64 units.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from losse.envs import Task, TaskSequence
from losse.runs.experiment import Run, TaskSettings, methods_of, no_sweep
from losse.runs.record import Record
from losse.runs.table import Cell, Table, mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "continual"
METHODS = ("losse", "full-replay", "online", "si", "coreset")
CONTROLS = ("random", "alone")
"""No model at all; and Losse, trained on a single task. They are what performances refer to."""
RL = ("gymnasium", "stable_baselines3")
NEEDS: Mapping[str, tuple[str, ...]] = {
    method: (*RL, "jax") if method in METHODS[1:] else RL for method in (*METHODS, *CONTROLS)
}
SEEDS_AT_ONCE: Mapping[str, int] = {}
SEEDS = {"quick": 1, "paper": 5}
FIRST = 100
"""Random actions at the beginning of each task."""
NETWORK: Mapping[str, Any] = {"hidden": [64, 64]}

Rows = npt.NDArray[Any]


class World(NamedTuple):
    """Tasks in sequence, how they are planned for, and how long each lasts."""

    title: str
    steps: int
    limit: int
    """Steps of an episode."""
    planner: str
    options: Mapping[str, Any]


TASKS = {
    "compass": World("compass", 500, 50, "beam", {"horizon": 8, "width": 30}),
    "pendulum": World(
        "pendulum", 1000, 200, "icem", {"horizon": 15, "n_samples": 60, "n_iterations": 2}
    ),
}


class Compass(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The Gridworld with actions that are turned by another quarter in each quarter of it."""

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._obs, info = self.env.reset(**arguments)
        return self._obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step with the action that is meant here."""
        x, y = self._obs
        turned = (int(action) + int(x > 0.5) + 2 * int(y > 0.5)) % 4
        self._obs, *rest = self.env.step(turned)
        return self._obs, *rest


@dataclass(frozen=True)
class Place:
    """Reward for being near a place of the plane."""

    x: float
    y: float

    def __call__(self, obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
        """Negative distance."""
        return -np.asarray(np.hypot(next_obs[:, 0] - self.x, next_obs[:, 1] - self.y))


@dataclass(frozen=True)
class Angle:
    """Reward for holding a pendulum at an angle, as Gymnasium's for the upright one."""

    angle: float

    def __call__(self, obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
        """Negative squared distance from rest at the angle."""
        off = np.arctan2(obs[:, 1], obs[:, 0]) - self.angle
        off = (off + np.pi) % (2 * np.pi) - np.pi
        return -np.asarray(off**2 + 0.1 * obs[:, 2] ** 2 + 0.001 * actions[:, 0] ** 2)


@dataclass(frozen=True)
class Spin:
    """Reward for turning a pendulum at some speed."""

    speed: float

    def __call__(self, obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
        """Negative distance from the speed."""
        return -np.asarray(np.abs(next_obs[:, 2] - self.speed))


def _never(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    return np.zeros(len(obs), dtype=bool)


SEQUENCES: Mapping[str, Sequence[Task]] = {
    "compass": tuple(
        Task(name, Place(x + 0.35, y + 0.4), _never, {"start": (x + 0.05, y + 0.05)})
        for name, x, y in (
            ("south-west", 0.0, 0.0),
            ("south-east", 0.52, 0.0),
            ("north-east", 0.52, 0.52),
            ("north-west", 0.0, 0.52),
        )
    ),
    "pendulum": (
        Task("upright", Angle(0.0)),
        Task("spin left", Spin(6.0)),
        Task("spin right", Spin(-6.0)),
        Task("hold left", Angle(0.6)),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings(TaskSettings):
    """Plan for four tasks in sequence, and see what is forgotten."""

    KNOWN = TASKS


sweep = no_sweep


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All worlds, methods and seeds, with the controls to which performances refer."""
    return [
        Run(NAME, method, world, seed, options_of(method, world, settings.steps))
        for world in settings.envs or TASKS
        for seed in range(settings.seeds or SEEDS[settings.preset])
        for method in (*CONTROLS, *methods_of(settings, METHODS))
    ]


def options_of(method: str, world: str, steps: int | None) -> dict[str, Any]:
    """Everything that decides a run, as plain values.

    >>> options_of("losse", "compass", None)["steps"]
    500
    """
    own = TASKS[world]
    return {
        "steps": steps or own.steps,
        "limit": own.limit,
        "tasks": [task.name for task in SEQUENCES[world]],
        "planner": own.planner,
        "planner_options": dict(own.options),
        "model": dict(NETWORK) if method in METHODS[1:] else {},
    }


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Let one agent go through all tasks for each run."""
    return [execute_one(run) for run in runs]


def execute_one(run: Run) -> Record:
    """Learn the tasks in sequence, and try all of them after each."""
    began, world, tasks = time.perf_counter(), str(run.setting), SEQUENCES[str(run.setting)]
    steps = run.options["steps"]
    seconds: list[float] = []
    if run.method == "random":
        returns = [[_tried(None, run, task) for task in tasks]]
    elif run.method == "alone":
        returns = [[]]
        for task in tasks:
            agent = make_agent(run, TaskSequence(make_world(world, run.options), [task], steps))
            _learn(agent, task, 2 * steps)
            returns[0].append(_tried(agent, run, task))
    else:
        agent = make_agent(run, TaskSequence(make_world(world, run.options), tasks, steps))
        returns = []
        for task in tasks:
            before = agent.meter.update_seconds
            _learn(agent, task, steps)
            seconds.append(round(agent.meter.update_seconds - before, 3))
            returns.append([_tried(agent, run, each) for each in tasks])
    last = returns[-1]
    details = {"returns": returns, "update_seconds": seconds}
    return run.record(
        float(np.mean(last)), seconds=round(time.perf_counter() - began, 2), details=details
    )


def make_world(world: str, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """A world without its tasks."""
    limit = options["limit"]
    if world == "pendulum":
        return gymnasium.make("Pendulum-v1", max_episode_steps=limit)
    grid = gymnasium.make("losse/Gridworld-v0", barrier=False, max_episode_steps=limit)
    return Compass(grid)


def make_agent(run: Run, env: gymnasium.Env[Any, Any]) -> Any:
    """A planning agent with the model of a run."""
    from losse.planning import PlanningAgent

    return PlanningAgent(
        env,
        "losse" if run.method == "alone" else run.method,
        run.options["planner"],
        planner_options=run.options["planner_options"],
        model_options=run.options["model"] or None,
        learning_starts=FIRST,
        seed=run.seed,
    )


def _learn(agent: Any, task: Task, steps: int) -> None:
    """Learn a task, with random actions first."""
    agent.set_reward(task.reward, termination=_never)
    agent.learning_starts = agent.num_timesteps + FIRST
    agent.learn(steps, reset_num_timesteps=False)


def _tried(agent: Any, run: Run, task: Task) -> float:
    """Return of two episodes of a task; without an agent, of random actions."""
    env = TaskSequence(make_world(str(run.setting), run.options), [task], 10**9)
    if agent is not None:
        before = agent.objective
        agent.set_reward(task.reward, termination=_never)
    env.action_space.seed(run.seed)
    total = 0.0
    for episode in range(2):
        obs, _ = env.reset(seed=10**6 + 2 * run.seed + episode)
        plan, over = None, False
        while not over:
            if agent is None:
                action = env.action_space.sample()
            else:
                action, plan = agent.predict(obs, plan)
            obs, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            over = terminated or truncated
    if agent is not None:
        agent.set_reward(before.reward, termination=before.termination)
    return round(total / 2, 4)


class Measures(NamedTuple):
    """What a run comes to."""

    performance: float
    forgetting: float
    zero_shot: float
    seconds: float


def measures(record: Record, controls: Sequence[Record]) -> Measures:
    """Performance, forgetting and zero-shot performance, relative to the controls of its world."""
    worst, best = (
        np.mean([r.details["returns"][0] for r in controls if r.method == name], axis=0)
        for name in CONTROLS
    )
    P = (np.array(record.details["returns"]) - worst) / (best - worst)
    later = P[np.triu_indices(len(P), 1)]
    forgetting = (P.diagonal() - P[-1])[:-1]
    return Measures(
        float(P[-1].mean()),
        float(forgetting.mean()),
        float(later.mean()),
        float(record.details["update_seconds"][-1]),
    )


def table(records: Sequence[Record]) -> Table:
    """Performance, forgetting, zero-shot performance and cost of every world and method."""
    rows: list[tuple[Cell, ...]] = []
    for world in _worlds_of(records):
        own = [record for record in records if record.setting == world]
        controls = [record for record in own if record.method in CONTROLS]
        for method in METHODS:
            found = [measures(r, controls) for r in own if r.method == method]
            if found:
                means = [mean_of(column) for column in zip(*found, strict=True)]
                rows.append((world, method, *means))
    columns = (
        *("world", "method", "performance", "forgetting", "zero-shot"),
        "seconds of updates, last task",
    )
    return Table(columns, rows)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Performance on each task after each task."""
    from losse.paper.planning.figures import draw_tasks

    panels = {}
    for world in _worlds_of(records):
        own = [record for record in records if record.setting == world]
        controls = [record for record in own if record.method in CONTROLS]
        worst, best = (
            np.mean([r.details["returns"][0] for r in controls if r.method == name], axis=0)
            for name in CONTROLS
        )
        names = [task.name for task in SEQUENCES[world]]
        curves = {
            method: (np.array([r.details["returns"] for r in own if r.method == method]) - worst)
            / (best - worst)
            for method in METHODS
            if any(r.method == method for r in own)
        }
        panels[world] = (names, curves)
    return {"tasks": draw_tasks(panels)}


def _worlds_of(records: Sequence[Record]) -> list[str]:
    """Worlds that have records of methods and of both controls."""
    known = {(record.setting, record.method) for record in records}
    return [
        world
        for world in TASKS
        if all((world, name) in known for name in CONTROLS)
        and any((world, name) in known for name in METHODS)
    ]
