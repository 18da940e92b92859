"""Which environments are learned, and what is written down of each step?"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import flatten

from benchmarks.streams.stream import Rows

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "Hopper-v5": {},
    "HalfCheetah-v5": {},
    "Walker2d-v5": {},
    # Positions and velocities only: 27 numbers, as in the literature on models of Ant.
    "Ant-v5": {"include_cfrc_ext_in_observation": False},
    "InvertedDoublePendulum-v5": {},
    "Reacher-v5": {},
    "Pendulum-v1": {},
    "Acrobot-v1": {},
    "MountainCarContinuous-v0": {},
}
"""Environment ids and the options they are made with."""


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes down every step, whoever takes it.

    The next observation is the true one also where an episode ends.  Discrete actions are inputs
    in the form of indicators.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._rows: list[tuple[Any, Any, int]] = []
        self._episode = -1
        self._observation: Any = None

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._observation, info = self.env.reset(**options)
        self._episode += 1
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step and remember it."""
        before = self._observation
        self._observation, reward, *rest = self.env.step(action)
        x = np.concatenate([before, flatten(self.action_space, action)])
        y = np.concatenate([self._observation - before, [float(reward)]])
        self._rows.append((x, y, self._episode))
        return self._observation, reward, *rest

    def rows(self) -> Rows:
        """All steps so far."""
        X, Y, episode = zip(*self._rows, strict=True)
        return Rows(np.array(X, np.float64), np.array(Y, np.float64), np.array(episode, np.int64))


def make(name: str) -> Recorder:
    """Make one of the :data:`ENVIRONMENTS`, with a recorder around it."""
    # MuJoCo leaves its log of warnings in the working directory.
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.chdir(scratch),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)
        return Recorder(gymnasium.make(name, **ENVIRONMENTS[name]))
