"""Tasks that come one after the other in one world: other rewards, other places, other rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.core import ActType, ObsType

Rows = npt.NDArray[Any]
Function = Callable[[Rows, Rows, Rows], npt.ArrayLike]


@dataclass(frozen=True)
class Task:
    """What is wanted for a while, and where.

    Attributes
    ----------
    name
        As ``info["task_name"]`` has it.
    reward
        A function of (obs, actions, next_obs), batches of one row here, to one number per row; so
        it can be given to `losse.planning.PlanningAgent.set_reward` as it is. None: the
        environment's own.
    termination
        The same to one boolean per row. It decides alone when an episode ends, also where the
        environment would end one. None: the environment decides.
    options
        For the environment's `reset`: the region in which episodes start.
    rules
        Attributes of the unwrapped environment and their values: the dynamics, such as ``{"g":
        5.0}`` for a pendulum. They are put back when the task is over.
    """

    name: str
    reward: Function | None = None
    termination: Function | None = None
    options: Mapping[str, Any] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)


class TaskSequence(
    gymnasium.Wrapper[ObsType, ActType, ObsType, ActType], gymnasium.utils.RecordConstructorArgs
):
    """An environment whose task changes after given numbers of steps.

    All tasks have the observations and actions of the environment. When a task's time is up, the
    episode is cut off (``truncated``), and the next one has the next task; the last task stays.
    ``info["task"]`` and ``info["task_name"]`` say which one a step or a reset belongs to.

    Parameters
    ----------
    env
        The world.
    tasks
        In the order in which they come.
    steps
        How long each lasts: one number for all, or one each.

    Attributes
    ----------
    tasks
        As given.
    task
        The number of the present one.

    Examples
    --------
    >>> import gymnasium
    >>> from losse.envs import Task, TaskSequence
    >>> def spin(obs, actions, next_obs):
    ...     return next_obs[:, 2]
    >>> tasks = [Task("upright"), Task("spin", reward=spin), Task("moon", rules={"g": 1.6})]
    >>> env = TaskSequence(gymnasium.make("Pendulum-v1"), tasks, steps=400)
    >>> obs, info = env.reset(seed=0)
    >>> info
    {'task': 0, 'task_name': 'upright'}
    """

    def __init__(
        self,
        env: gymnasium.Env[ObsType, ActType],
        tasks: Sequence[Task],
        steps: int | Sequence[int],
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, tasks=tasks, steps=steps)
        gymnasium.Wrapper.__init__(self, env)
        self.tasks = tuple(tasks)
        if not self.tasks:
            raise ValueError("tasks is empty: give at least one.")
        each = [steps] * len(self.tasks) if isinstance(steps, int) else list(steps)
        if len(each) != len(self.tasks) or min(each) < 1:
            raise ValueError(
                f"steps={steps!r} must be a number of at least 1, or one for each of the "
                f"{len(self.tasks)} tasks."
            )
        for task in self.tasks:
            for name in task.rules:
                if not hasattr(env.unwrapped, name):
                    raise ValueError(
                        f"task {task.name!r} has a rule {name!r}, which is no attribute of "
                        f"{env.unwrapped}."
                    )
        self._ends = np.cumsum(each)
        self._taken = 0
        self._own_rules: dict[str, Any] = {}
        self._obs: Any = None
        self.task = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Begin an episode of the present task; ``options`` come on top of the task's."""
        due = int(np.searchsorted(self._ends, self._taken, side="right"))
        self._switch(min(due, len(self.tasks) - 1))
        own = self.tasks[self.task].options
        together = {**(own or {}), **(options or {})} or None
        obs, info = self.env.reset(seed=seed, options=together)
        self._obs = obs
        return obs, info | self._told()

    def step(self, action: ActType) -> tuple[ObsType, Any, bool, bool, dict[str, Any]]:
        """Take a step in the present task."""
        before = self._obs
        obs, reward, terminated, truncated, info = self.env.step(action)
        task = self.tasks[self.task]
        row = [np.asarray(part)[None] for part in (before, action, obs)]
        if task.reward is not None:
            reward = _single("reward", task, task.reward(*row))
        if task.termination is not None:
            terminated = bool(_single("termination", task, task.termination(*row)))
        self._obs = obs
        self._taken += 1
        last = self.task == len(self.tasks) - 1
        truncated = bool(truncated or (not last and self._taken >= self._ends[self.task]))
        return obs, reward, terminated, truncated, info | self._told()

    def _switch(self, number: int) -> None:
        """Make a task the present one: put the old rules back, and set its own."""
        world: Any = self.env.unwrapped
        for name, value in self._own_rules.items():
            setattr(world, name, value)
        rules = self.tasks[number].rules
        self._own_rules = {name: getattr(world, name) for name in rules}
        for name, value in rules.items():
            setattr(world, name, value)
        self.task = number

    def _told(self) -> dict[str, Any]:
        return {"task": self.task, "task_name": self.tasks[self.task].name}


def goal(
    name: str, place: Sequence[float], size: float = 0.05, *, start: Sequence[float] | None = None
) -> Task:
    """A task of `Gridworld`: reach the square with this centre and half of its side's length.

    The reward is -1 for every step and 0 for the one that reaches it, where the episode ends; the
    corner that is the goal otherwise has no meaning. ``start`` is where episodes begin.

    >>> import gymnasium
    >>> import losse.envs
    >>> from losse.envs import TaskSequence
    >>> from losse.envs.tasks import goal
    >>> tasks = [goal("near", (0.2, 0.2)), goal("far", (0.9, 0.1), start=(0.7, 0.5))]
    >>> env = TaskSequence(gymnasium.make("losse/Gridworld-v0"), tasks, steps=[1000, 2000])
    >>> obs, info = env.reset(seed=0)
    """
    centre = np.asarray(place, dtype=np.float64)

    def reached(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
        return np.asarray((np.abs(next_obs - centre) <= size).all(axis=1))

    def reward(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.float64]:
        return np.where(reached(obs, actions, next_obs), 0.0, -1.0)

    options = None if start is None else {"start": tuple(start)}
    return Task(name, reward, reached, options)


def _single(what: str, task: Task, result: npt.ArrayLike) -> float:
    """The one number of a batch of one row."""
    array = np.asarray(result)
    if array.shape != (1,):
        raise ValueError(
            f"the {what} of task {task.name!r} returned an array of shape {array.shape} for a "
            "batch of one row: expected (1,), one value per row."
        )
    return float(array[0])
