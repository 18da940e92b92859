"""Planners that choose among given actions: beam search, and random shooting for any actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count
from losse.planning.continuous import ContinuousPlanner
from losse.planning.planner import Planner, Rows, Task


@dataclass(eq=False)
class BeamSearch(Planner):
    """A search through the tree of all sequences of discrete actions.

    At every depth all actions are tried in all sequences that are left, and those that have gained
    most are kept. If there are no more sequences than ``width``, the search is exhaustive. Among
    equals, chance decides. The plan of the last decision competes with the result.

    Parameters
    ----------
    horizon
        Steps that are imagined.
    width
        Sequences that are kept at each depth.
    seed
        Of the choice among equals.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.planning import BeamSearch, Objective
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Discrete(3))
    >>> gain = Objective(reward=lambda obs, actions, next_obs: actions == 2)
    >>> action, plan = BeamSearch(horizon=4)(model, [0.0], gain)
    >>> plan.actions, plan.value
    (array([2, 2, 2, 2]), 4.0)
    """

    horizon: int = 15
    width: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("width", self.width)

    @classmethod
    def suits(cls, action_space: spaces.Space[Any]) -> bool:
        """Whether it is a Discrete."""
        return isinstance(action_space, spaces.Discrete)

    def _search(self, task: Task) -> tuple[Rows, Rows]:
        space = task.model.action_space
        assert isinstance(space, spaces.Discrete)
        every = int(space.start) + np.arange(int(space.n))
        futures = task.futures()
        sequences = np.empty((1, 0), dtype=every.dtype)
        for _ in range(self.horizon):
            rows = np.repeat(np.arange(len(sequences)), len(every))
            actions = np.tile(every, len(sequences))
            # What is at its end has one way to go on, not one for each action.
            needed = futures.going[rows] | (actions == every[0])
            rows, actions = rows[needed], actions[needed]
            futures = futures.take(rows)
            futures.step(actions)
            sequences = np.column_stack([sequences[rows], actions])
            if len(sequences) > self.width:
                best = _best(futures.returns(), task.rng)[: self.width]
                futures, sequences = futures.take(best), sequences[best]
        futures.require_finite()
        gains = futures.returns()
        found = sequences[_best(gains, task.rng)[:1]]
        if task.start is not None and task.returns(task.start)[0] > gains.max():
            found = task.start
        return found[0], found


@dataclass(eq=False)
class RandomShooting(Planner):
    """The best of many random sequences of actions; for discrete and for continuous ones.

    Simple, and what other planners should beat. The plan of the last decision competes with the
    new ones.

    Parameters
    ----------
    horizon
        Steps that are imagined.
    n_samples
        Sequences of actions, each action drawn uniformly.
    seed
        Of the sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.planning import Objective, RandomShooting
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Discrete(3))
    >>> gain = Objective(reward=lambda obs, actions, next_obs: actions == 2)
    >>> RandomShooting(horizon=3)(model, [0.0], gain)[1].actions
    array([2, 2, 2])
    """

    horizon: int = 15
    n_samples: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_samples", self.n_samples)

    @classmethod
    def suits(cls, action_space: spaces.Space[Any]) -> bool:
        """Whether it is a Discrete, or a Box of real numbers with finite bounds."""
        return BeamSearch.suits(action_space) or ContinuousPlanner.suits(action_space)

    def _search(self, task: Task) -> tuple[Rows, Rows]:
        shape = (self.n_samples, self.horizon)
        sequences = uniform(task.model.action_space, shape, task.rng)
        if task.start is not None:
            sequences = np.concatenate([task.start, sequences[1:]])
        gains = task.returns(sequences)
        best = sequences[_best(gains, task.rng)[:1]]
        return best[0], best


def _best(gains: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Rows by what they gain, most first; equals in random order."""
    return np.lexsort((rng.random(len(gains)), -gains))


def uniform(space: spaces.Space[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Rows:
    """Actions of which all are equally likely."""
    if isinstance(space, spaces.Discrete):
        return int(space.start) + rng.integers(int(space.n), size=shape)
    assert isinstance(space, spaces.Box)
    drawn = rng.uniform(space.low, space.high, (*shape, *space.shape))
    return np.clip(drawn.astype(space.dtype), space.low, space.high)
