"""Recorded transitions of environments, of a random policy or of an agent while it learns."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import flatten
from numpy.typing import NDArray

from losse.dyna.presets import MBPO
from losse.typing import Array

OPTIONS: dict[str, dict[str, Any]] = {
    # Positions and velocities only: 27 and 45 numbers, as in the literature on models.
    env: dict(MBPO[env].env_options)
    for env in ("Ant-v5", "Humanoid-v5")
}
"""Options that an environment is made with, if it has any."""
LEARNING_STARTS = 1000  # the agent's actions are random until then


class Rows(NamedTuple):
    """Transitions: inputs are [observation, action], targets [next - observation, reward]."""

    X: Array
    Y: Array
    episode: NDArray[np.int64]
    """The number of the episode that each row belongs to."""

    def take(self, which: slice | NDArray[Any]) -> Rows:
        """Some of the rows, in their order."""
        return Rows(self.X[which], self.Y[which], self.episode[which])


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
    """Make an environment with a recorder around it."""
    # MuJoCo leaves its log of warnings in the working directory.
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.chdir(scratch),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)
        return Recorder(gymnasium.make(name, **OPTIONS.get(name, {})))


def random_policy(name: str, n: int, seed: int) -> Rows:
    """Step an environment n times with uniformly random actions."""
    env = make(name)
    env.action_space.seed(seed)
    env.reset(seed=seed)
    for _ in range(n):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    env.close()
    return env.rows()


def changing_policy(name: str, n: int, seed: int) -> Rows:
    """All n steps of a soft actor-critic agent while it learns, exploration included."""
    from sbx import SAC

    env = make(name)
    agent = SAC("MlpPolicy", env, learning_starts=LEARNING_STARTS, seed=seed)
    agent.learn(n)
    env.close()
    return env.rows().take(slice(n))
