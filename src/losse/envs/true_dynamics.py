"""What is to be said about an environment whose rules are known: the form that all truths have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """What steps lead to, one row each."""

    states: Array
    rewards: Array
    terminated: NDArray[np.bool_]


class TrueDynamics(ABC):
    """The rules of an environment, for any number of states at once.

    A state is what the environment itself goes by, (n, width); an observation shows it.

    Parameters
    ----------
    env
        The unwrapped environment. Its constants are read from it at every step.
    low, high
        Bounds of its states.
    """

    def __init__(self, env: Any, low: ArrayLike, high: ArrayLike) -> None:
        self.env = env
        self.low = np.asarray(low, dtype=np.float64)
        self.high = np.asarray(high, dtype=np.float64)

    @abstractmethod
    def step(self, states: Array, actions: NDArray[np.int64], rng: np.random.Generator) -> Outcome:
        """What each action leads to from each state; ``rng`` is for environments with noise."""

    @abstractmethod
    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Whether an episode is over in each state."""

    def excluded(self, states: Array) -> NDArray[np.bool_]:
        """Where no episode can be under way."""
        return self.ended(states)

    def draw(self, rng: np.random.Generator) -> Array:
        """One state, uniform over all in which an episode can be under way."""
        while True:
            state = rng.uniform(self.low, self.high)
            if not self.excluded(state[None])[0]:
                return state

    def put(self, state: Array) -> None:
        """Bring the environment, which must have been reset, into a state."""
        self.env.state = state

    def observe(self, states: Array) -> Array:
        """The observations of states, not rounded yet."""
        return states

    def states(self, obs: Array) -> Array:
        """The states that observations show."""
        return obs
