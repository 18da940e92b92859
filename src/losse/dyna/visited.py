"""What search control can see: past transitions, and what the agent thinks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse.dyna.agents import action_values, state_values
from losse.dyna.units import Rows, Transitions

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer

Numbers = npt.NDArray[np.int64]


class Visited:
    """All transitions of a replay buffer, as rows numbered from 0.

    Observations are in the environment's units. ``normaliser`` is the agent's `VecNormalize`, if it
    has one.
    """

    def __init__(
        self, buffer: DynaReplayBuffer, agent: Any, normaliser: Any, rng: np.random.Generator
    ) -> None:
        self.rng = rng
        self._buffer = buffer
        self._agent = agent
        self._normaliser = normaliser

    def __len__(self) -> int:
        return self._buffer.size() * self._buffer.n_envs

    def any(self, n: int) -> Numbers:
        """Rows drawn uniformly."""
        return self.rng.integers(len(self), size=n)

    def newest(self, n: int, of: int) -> Numbers:
        """Rows drawn uniformly from the ``of`` newest."""
        back = self.rng.integers(1, 1 + min(of, len(self)), size=n)
        return (self._buffer.pos * self._buffer.n_envs - back) % self._n_places

    def before(self, rows: Numbers) -> Numbers:
        """The rows that led to these; where an episode begins, these themselves."""
        buffer, n_envs = self._buffer, self._buffer.n_envs
        earlier = (rows - n_envs) % self._n_places
        first = rows // n_envs == (buffer.pos if buffer.full else 0)
        return np.where(first | buffer.ended(earlier), rows, earlier)

    def transitions(self, rows: Numbers) -> Transitions:
        """What happened there, in the environment's units."""
        return self._buffer.transitions(rows)

    def obs(self, rows: Numbers) -> Rows:
        """The observations alone."""
        return self._buffer.obs(rows)

    def values(self, obs: Rows) -> npt.NDArray[np.float64]:
        """What the agent expects from there on."""
        return state_values(self._agent, self.seen(obs))

    def surprise(self, rows: Numbers) -> npt.NDArray[np.float64]:
        """How far the agent's values are from one step of experience: the absolute TD error."""
        happened = self.transitions(rows)
        rewards = np.asarray(happened.rewards, dtype=np.float64)
        if self._normaliser is not None:
            rewards = self._normaliser.normalize_reward(rewards)
        future = np.where(happened.terminated, 0.0, self.values(happened.next_obs))
        scaled = self._buffer.units.buffer_actions(happened.actions)
        present = action_values(self._agent, self.seen(happened.obs), scaled)
        return np.abs(rewards + self._agent.gamma * future - present)

    def seen(self, obs: Rows) -> Rows:
        """Observations as the agent sees them."""
        return obs if self._normaliser is None else self._normaliser.normalize_obs(obs)

    @property
    def _n_places(self) -> int:
        return self._buffer.buffer_size * self._buffer.n_envs
