"""Conversion of transitions between the units of a replay buffer and those of a world model.

A buffer of Stable-Baselines3 holds observations without normalisation, continuous actions rescaled
to [-1, 1] and everything discrete in a column of its own. World models see what the environment
sees: unnormalised observations, and actions in the units of its action space. So a model can be
used, saved and compared apart from the agent that it was learned with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from losse.dyna.agents import Rows
from losse.world.spaces import flat


class Conversion:
    """Conversion from a buffer's units to a model's, and back.

    >>> conversion = Conversion(spaces.Box(0, 1, (2,)), spaces.Box(0, 10, (1,)))
    >>> conversion.model_actions(np.array([[-1.0], [0.5]]))
    array([[0. ],
           [7.5]])
    >>> conversion.buffer_actions(np.array([[0.0], [7.5]]))
    array([[-1. ],
           [ 0.5]], dtype=float32)
    """

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
    ) -> None:
        self._observation_space = observation_space
        self._action_space = action_space

    @property
    def discrete(self) -> bool:
        """Whether actions are discrete."""
        return isinstance(self._action_space, spaces.Discrete)

    def model_obs(self, obs: Rows) -> Rows:
        """Observations as the environment has them."""
        return obs.reshape(len(obs), *(self._observation_space.shape or ()))

    def buffer_obs(self, obs: Rows) -> Rows:
        """Observations as the buffer keeps them."""
        return obs[:, None] if isinstance(self._observation_space, spaces.Discrete) else obs

    def model_actions(self, actions: Rows) -> Rows:
        """Actions as the environment takes them."""
        if self.discrete:
            return actions[:, 0]
        space = self._action_space
        assert isinstance(space, spaces.Box)
        share = (actions.reshape(len(actions), *space.shape) + 1.0) / 2
        return np.clip(space.low + share * (space.high - space.low), space.low, space.high)

    def buffer_actions(self, actions: Rows) -> Rows:
        """Actions as the buffer keeps them."""
        if self.discrete:
            return actions[:, None]
        space = self._action_space
        assert isinstance(space, spaces.Box)
        scaled = 2.0 * (actions - space.low) / (space.high - space.low) - 1.0
        return scaled.reshape(len(actions), -1).astype(np.float32)

    def random_actions(self, n: int, rng: np.random.Generator) -> Rows:
        """Actions as the environment takes them, all of them equally likely."""
        space = self._action_space
        if isinstance(space, spaces.Discrete):
            return space.start + rng.integers(space.n, size=n)
        assert isinstance(space, spaces.Box)
        return rng.uniform(space.low, space.high, (n, *space.shape)).astype(space.dtype)


def require_observations(space: spaces.Space[Any]) -> None:
    """Raise `TypeError` for observations that Dyna cannot keep and imagine.

    >>> require_observations(spaces.Tuple([spaces.Box(0, 1, (2,))]))
    Traceback (most recent call last):
    ...
    TypeError: observation_space=Tuple(...) is not possible with Dyna: ...
    """
    flat("observation_space", space)
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else [space]
    if any(isinstance(part, spaces.Dict | spaces.Tuple) for part in parts):
        raise TypeError(
            f"observation_space={space!r} is not possible with Dyna: agents of Stable-Baselines3 "
            "take a Dict of simple spaces, but no Tuple and no Dict within a Dict. Put "
            "gymnasium.wrappers.FlattenObservation around the environment, and use MlpPolicy."
        )
