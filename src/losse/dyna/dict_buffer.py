"""Replay buffer for agents whose observations are a Dict, with Stable-Baselines3's multi inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples

from losse.dyna.agents import Rows
from losse.dyna.buffer import DynaReplayBuffer
from losse.world.spaces import flat


class DynaDictReplayBuffer(DynaReplayBuffer):
    """`DynaReplayBuffer` that keeps a Dict of observations as flat rows.

    Gymnasium's `flatten` says how. The world model learns and imagines such rows; its observation
    space is the flattened one. The agent gets a Dict again, with the likeliest choice where a part
    is discrete.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        *arguments: Any,
        **options: Any,
    ) -> None:
        self.agent_space = observation_space
        flattened = spaces.flatten_space(observation_space)
        super().__init__(buffer_size, flattened, action_space, *arguments, **options)

    def add(
        self, obs: Any, next_obs: Any, action: Rows, reward: Rows, done: Rows, infos: Any
    ) -> None:
        """Store one step of all environments."""
        super().add(
            self._flat("obs", obs), self._flat("next_obs", next_obs), action, reward, done, infos
        )

    def seen(self, obs: Rows, normaliser: Any) -> Any:
        """Observations as the agent sees them: a Dict."""
        parts = flat("observation_space", self.agent_space).restore(obs.astype(np.float64))
        return super().seen(parts, normaliser)

    def to_torch(self, array: Any, copy: bool = True) -> Any:
        """Tensors of an array, or of a dict of arrays."""
        if isinstance(array, Mapping):
            return {key: super(DynaDictReplayBuffer, self).to_torch(a) for key, a in array.items()}
        return super().to_torch(array, copy)

    def samples(self, columns: list[Rows], env: Any) -> Any:
        """Columns as agents take them: observations are Dicts."""
        return DictReplayBufferSamples(*super().samples(columns, env)[:5])

    def _get_samples(self, batch_inds: npt.NDArray[np.int64], env: Any = None) -> Any:
        chosen = self._rng.integers(self.n_envs, size=len(batch_inds))
        happened = self.transitions(batch_inds * self.n_envs + chosen)
        return self.samples(self.columns(happened, env), env)

    def _flat(self, name: str, obs: Any) -> Rows:
        return flat("observation_space", self.agent_space).rows(name, obs)


def buffer_class(observation_space: spaces.Space[Any]) -> type[DynaReplayBuffer]:
    """Replay buffer that suits observations.

    >>> buffer_class(spaces.Dict(place=spaces.Box(0, 1, (2,)))).__name__
    'DynaDictReplayBuffer'
    """
    return DynaDictReplayBuffer if isinstance(observation_space, spaces.Dict) else DynaReplayBuffer
