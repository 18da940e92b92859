"""Search control of Algorithm 3: from which states imagination starts.

Visited states are drawn uniformly (the paper's way), or from the newest, or by two searches:

- Prioritised sweeping starts where the agent's values are wrong, and one step before. A change of
  value at one state matters at those that lead to it (Moore and Atkeson, 1993; Peng and Williams,
  1993). Exact sweeping needs a table. Here a pool of visited transitions is drawn uniformly, starts
  are drawn from it by their absolute TD error, and half of them step back to the state that came
  before in the same episode.
- Hill climbing starts on the way to where the agent expects most, after Pan, Yao, Farahmand and
  White (2019), who follow the gradient of the value. Here a step in a random direction is taken if
  the value rises, which needs no gradient and so works for every agent. Starts are taken from all
  along the ways, so that values can flow back. States stay within the range of those visited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.dyna.agents import Rows, action_values, state_values
from losse.world.transitions import Transitions

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer

Numbers = npt.NDArray[np.int64]

RECENT = 1000
"""Newest transitions that count as the present policy's."""
POOL = 4
"""Candidates for each prioritised start."""
FLOOR = 1e-6
"""Priority of a transition without any error."""
CLIMBING_STEPS = 4
"""Largest number of steps uphill."""
STRIDE = 0.1
"""Deviation of a step uphill, in standard deviations of the visited states."""


class Visited:
    """All transitions of a replay buffer, as rows numbered from 0.

    Observations are in the environment's units. ``normaliser`` is the agent's `VecNormalize`, if it
    has one.
    """

    def __init__(
        self, buffer: DynaReplayBuffer, agent: Any, normaliser: Any, rng: np.random.Generator
    ) -> None:
        self.rng = rng
        self.conversion = buffer.conversion
        self._buffer = buffer
        self._agent = agent
        self.normaliser = normaliser

    def __len__(self) -> int:
        return self._buffer.size() * self._buffer.n_envs

    def any(self, n: int) -> Numbers:
        """Rows drawn uniformly."""
        return self.rng.integers(len(self), size=n)

    def newest(self, n: int, of: int) -> Numbers:
        """Rows drawn uniformly from the ``of`` newest."""
        back = self.rng.integers(1, 1 + min(of, len(self)), size=n)
        return (self._buffer.pos * self._buffer.n_envs - back) % self._buffer.capacity

    def before(self, rows: Numbers) -> Numbers:
        """The rows that led to these; where an episode begins, these themselves."""
        buffer, n_envs = self._buffer, self._buffer.n_envs
        earlier = (rows - n_envs) % self._buffer.capacity
        first = rows // n_envs == (buffer.pos if buffer.full else 0)
        return np.where(first | buffer.ended(earlier), rows, earlier)

    def transitions(self, rows: Numbers) -> Transitions:
        """Transitions of these rows, in the environment's units."""
        return self._buffer.transitions(rows)

    def obs(self, rows: Numbers) -> Rows:
        """Observations of these rows, in the environment's units."""
        return self._buffer.obs(rows)

    def values(self, obs: Rows) -> npt.NDArray[np.float64]:
        """Values that the agent gives to observations."""
        return state_values(self._agent, self.seen(obs))

    def surprise(self, rows: Numbers) -> npt.NDArray[np.float64]:
        """Absolute TD errors of the agent's values at these rows."""
        happened = self.transitions(rows)
        rewards = np.asarray(happened.rewards, dtype=np.float64)
        if self.normaliser is not None:
            rewards = self.normaliser.normalize_reward(rewards)
        future = np.where(happened.terminated, 0.0, self.values(happened.next_obs))
        scaled = self.conversion.buffer_actions(happened.actions)
        present = action_values(self._agent, self.seen(happened.obs), scaled)
        return np.abs(rewards + self._agent.gamma * future - present)

    def seen(self, obs: Rows) -> Any:
        """Observations as the agent sees them."""
        return self._buffer.seen(obs, self.normaliser)


def uniform(visited: Visited, n: int) -> Rows:
    """States drawn uniformly from all that were visited."""
    return visited.obs(visited.any(n))


def recent(visited: Visited, n: int) -> Rows:
    """States drawn uniformly from the last that were visited, as the present policy visits them."""
    return visited.obs(visited.newest(n, RECENT))


def prioritised(visited: Visited, n: int) -> Rows:
    """Visited states drawn by the agent's TD error, or the ones before them."""
    pool = visited.any(POOL * n)
    weights = visited.surprise(pool) + FLOOR
    total = weights.sum()
    # An agent that has diverged is found out elsewhere.
    shares = weights / total if np.isfinite(total) else None
    chosen = visited.rng.choice(pool, size=n, p=shares)
    back = visited.rng.random(n) < 0.5
    return visited.obs(np.where(back, visited.before(chosen), chosen))


def climbed(visited: Visited, n: int) -> Rows:
    """Visited states, and states up to four steps uphill from them."""
    here = visited.obs(visited.any(n))
    low, high = here.min(axis=0), here.max(axis=0)
    stride = STRIDE * here.std(axis=0)
    value = visited.values(here)
    goes_on = visited.rng.integers(1 + CLIMBING_STEPS, size=n)
    for step in range(CLIMBING_STEPS):
        there = here + stride * visited.rng.normal(size=here.shape)
        there = np.clip(there, low, high).astype(here.dtype)
        value_there = visited.values(there)
        better = (value_there > value) & (step < goes_on)
        here = np.where(better.reshape(-1, *[1] * (here.ndim - 1)), there, here)
        value = np.where(better, value_there, value)
    return here


class SearchControl(NamedTuple):
    """A way to choose the states from which imagination starts.

    Attributes
    ----------
    starts
        A function of what was visited and a number to that many observations.
    own_actions
        Whether actions are those that the agent would take itself, its exploration included.
        Otherwise a part of them is drawn uniformly, so that imagination explores.
    continuous
        Whether observations must be real numbers.
    """

    starts: Callable[[Visited, int], Rows]
    own_actions: bool = False
    continuous: bool = False


SEARCH_CONTROLS = {
    "uniform": SearchControl(uniform),
    "on-policy": SearchControl(recent, own_actions=True),
    "prioritised": SearchControl(prioritised),
    "hill-climbing": SearchControl(climbed, continuous=True),
}


def require_suitable(name: str, observation_space: spaces.Space[Any]) -> None:
    """Raise `ValueError` if a search control cannot work on these observations.

    >>> require_suitable("hill-climbing", spaces.Discrete(3))
    Traceback (most recent call last):
    ...
    ValueError: search_control='hill-climbing' needs real observations, not Discrete(3): ...
    """
    real = observation_space.dtype is not None and np.issubdtype(
        observation_space.dtype, np.floating
    )
    if SEARCH_CONTROLS[name].continuous and not real:
        others = [other for other, control in SEARCH_CONTROLS.items() if not control.continuous]
        raise ValueError(
            f"search_control={name!r} needs real observations, not {observation_space}: use one "
            f"of {', '.join(others)}."
        )
