"""The simulator in the place of a world model: the limit of what planning can gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from losse.typing import Array
from losse.world import WorldModel

Put = Callable[[Any, Array], None]
"""Brings an unwrapped environment into the state that an observation shows."""


def _put_pendulum(env: Any, obs: Array) -> None:
    env.state = np.array([np.arctan2(obs[1], obs[0]), obs[2]])


def _put_state(env: Any, obs: Array) -> None:
    env.state = obs.copy()


def _put_cart_pole(env: Any, obs: Array) -> None:
    env.state = obs.copy()
    env.steps_beyond_terminated = None


def _put_inverted_pendulum(env: Any, obs: Array) -> None:
    env.set_state(obs[:2], obs[2:])


def _put_reacher(env: Any, obs: Array) -> None:
    cosines, sines, target, speed = obs[:2], obs[2:4], obs[4:6], obs[6:8]
    angles = np.arctan2(sines, cosines)
    env.set_state(np.concatenate([angles, target]), np.concatenate([speed, [0.0, 0.0]]))


PUTS: dict[str, Put] = {
    "Pendulum-v1": _put_pendulum,
    "CartPole-v1": _put_cart_pole,
    "MountainCarContinuous-v0": _put_state,
    "InvertedPendulum-v5": _put_inverted_pendulum,
    "Reacher-v5": _put_reacher,
}
"""Environments whose observation determines their state."""


class Simulator(WorldModel):
    """A world model that steps the environment itself, one row after the other.

    It has nothing to learn, and is slow: it is for the limit that learned models are compared
    with.

    Parameters
    ----------
    env_id
        One of those in `PUTS`.
    options
        Further arguments of the environment.

    Examples
    --------
    >>> model = Simulator("CartPole-v1")
    >>> next_obs, rewards, terminated = model.step(np.zeros((1, 4), np.float32), [1])
    >>> next_obs.round(3), rewards, terminated
    (array([[ 0.   ,  0.195,  0.   , -0.293]], dtype=float32), array([1.]), array([False]))
    """

    def __init__(self, env_id: str, **options: Any) -> None:
        if env_id not in PUTS:
            raise ValueError(f"env_id={env_id!r} is not known: choose from {', '.join(PUTS)}.")
        self._put = PUTS[env_id]
        env = gymnasium.make(env_id, **options)
        env.reset(seed=0)
        self._env: Any = env.unwrapped
        super().__init__(env.observation_space, env.action_space)

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """There is nothing to learn."""

    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        targets = np.empty((len(states), states.shape[1] + 2))
        for row, (state, action) in enumerate(zip(states, actions, strict=True)):
            self._put(self._env, state)
            reached, reward, terminated, _, _ = self._env.step(action)
            targets[row, :-2] = reached - state
            targets[row, -2:] = reward, terminated
        return targets
