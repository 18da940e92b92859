"""Environments of the paper's experiments; importing this package registers them in Gymnasium.

>>> import gymnasium
>>> import losse.envs
>>> gymnasium.make("losse/Gridworld-v0").action_space
Discrete(4)
"""

from __future__ import annotations

from losse.extras import missing

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise missing("losse.envs", "gymnasium") from error

from losse.envs.exploring_starts import ExploringStarts
from losse.envs.gridworld import Gridworld
from losse.envs.tasks import Task, TaskSequence

__all__ = ["ExploringStarts", "Gridworld", "Task", "TaskSequence"]

EPISODE_STEPS = 2000
"""The limit of an episode of the registered Gridworld; its docstring says why."""

gymnasium.register(
    id="losse/Gridworld-v0",
    entry_point="losse.envs.gridworld:Gridworld",
    max_episode_steps=EPISODE_STEPS,
)
