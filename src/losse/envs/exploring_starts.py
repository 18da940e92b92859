"""Wrapper that starts episodes anywhere, to tell lack of exploration from other failures."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.core import ActType, ObsType

from losse.envs.true_dynamics import true_dynamics


class ExploringStarts(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType]):
    """Episodes start in a state drawn uniformly from all in which an episode can be under way.

    With them an agent need not find its way to be everywhere: what it does not learn then is not
    for lack of exploration. They are for training; evaluate without.

    Parameters
    ----------
    env
        One of those in `losse.envs.true_dynamics.KNOWN`. Its own random numbers decide, so that
        ``reset(seed=...)`` repeats them. Wrappers that change observations go around this one.

    Examples
    --------
    >>> import gymnasium
    >>> from losse.envs import ExploringStarts
    >>> env = ExploringStarts(gymnasium.make("MountainCar-v0"))
    >>> obs, info = env.reset(seed=0)
    >>> bool(obs[1] != 0)  # others start at rest
    True
    """

    def __init__(self, env: gymnasium.Env[ObsType, ActType]) -> None:
        self._truth = true_dynamics(env)
        self._truth.draw(np.random.default_rng(0))  # raises where starts are not known
        if env.observation_space != env.unwrapped.observation_space:
            raise ValueError(
                f"{env} changes the observations: put that wrapper around ExploringStarts."
            )
        super().__init__(env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Begin an episode somewhere."""
        _, info = self.env.reset(seed=seed, options=options)
        state = self._truth.draw(self.np_random)
        self._truth.put(state)
        obs: Any = self._truth.observe(state[None])[0].astype(self.observation_space.dtype)
        return obs, info
