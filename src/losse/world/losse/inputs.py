"""Inputs of a Losse world model: states and actions side by side, in comparable units.

A number with finite bounds is mapped from them to [-3, 3]; one without is standardised by the
transitions of a warm-up, after which everything stays as it is. Both are clipped to [-3, 3], the
range in which the paper's grids lie. An encoder that is built anew as data come learns a scaling of
its own each time: numbers without bounds are then left to it. One-hot entries are multiplied by the
square root of their number, so that their mean square is one, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from losse.scaling import LIMIT, standard
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.world.spaces import FlatSpace, joined, one_hot


class Inputs:
    """The scaling of states and actions, and the matrix that a model takes.

    Parameters
    ----------
    observations, actions
        The spaces.
    with_actions
        Whether the matrix has columns for the actions; not so in one model per action.
    standardised
        Whether numbers without bounds are scaled; else they stay as they are.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world.spaces import flat
    >>> low, high = np.array([0, -np.inf]), np.array([1, np.inf])
    >>> state = flat("observation_space", Box(low, high, dtype=np.float64))
    >>> inputs = Inputs(state, flat("action_space", Discrete(4)))
    >>> inputs.bounded  # the second number has no bounds
    False
    >>> states, actions = np.array([[0.0, 2.0], [1.0, 6.0]]), np.array([0, 3])
    >>> inputs.learn(states, actions)
    >>> inputs.matrix(states, actions)
    array([[-3., -1.,  2.,  0.,  0.,  0.],
           [ 3.,  1.,  0.,  0.,  0.,  2.]])
    """

    def __init__(
        self,
        observations: FlatSpace,
        actions: FlatSpace,
        *,
        with_actions: bool = True,
        standardised: bool = True,
    ) -> None:
        parts = [observations.scaling(LIMIT)]
        if with_actions and not actions.discrete:
            parts.append(actions.scaling(LIMIT))
        self.scaling, self._limit = joined(*parts)
        self._learned = np.isnan(self.scaling.shift)
        self.scaling.shift[self._learned] = 0.0
        if not standardised:
            self._limit = np.where(self._learned, np.inf, self._limit)
            self._learned[:] = False
        self._with_numbers = with_actions and not actions.discrete
        self._n_hot = actions.width if with_actions and actions.discrete else 0

    @property
    def bounded(self) -> bool:
        """Whether bounds settle the scaling, so that nothing needs to be learned."""
        return not self._learned.any()

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self._limit) + self._n_hot

    def learn(self, states: Array, actions: npt.NDArray[np.generic]) -> None:
        """Scale what has no bounds by the mean and standard deviation of these rows."""
        rows = self._numbers(states, actions)[:, self._learned]
        self.scaling.shift[self._learned], self.scaling.factor[self._learned] = standard(rows)

    def matrix(self, states: Array, actions: npt.NDArray[np.generic]) -> Array:
        """[scaled state | scaled or one-hot action], one row each."""
        rows = self.scaling.apply(self._numbers(states, actions), self._limit)
        if not self._n_hot:
            return rows
        hot = one_hot(actions.astype(np.int64), self._n_hot)
        return np.concatenate([rows, hot * np.sqrt(self._n_hot)], axis=1)

    def same(self, other: Inputs) -> bool:
        """Whether another model scales the same columns in the same way."""
        return all(map(np.array_equal, self.scaling, other.scaling))

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"shift": self.scaling.shift, "factor": self.scaling.factor}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        saved.array("shift", out=self.scaling.shift)
        saved.array("factor", out=self.scaling.factor)
        if not (self.scaling.factor > 0).all():
            saved.refuse("factor is not above 0")

    def _numbers(self, states: Array, actions: npt.NDArray[np.generic]) -> Array:
        return np.concatenate([states, actions], axis=1) if self._with_numbers else states
