"""The joint input of a model: states and actions side by side, in comparable units.

A number with finite bounds is mapped from them to [-3, 3]; one without is standardised by the
transitions of a warm-up, after which everything stays as it is. Both are clipped to [-3, 3], the
range in which the paper's grids lie. One-hot entries are multiplied by the square root of
their number, so that their mean square is one, too.
"""

import numpy as np
import numpy.typing as npt

from losse.encoders.base import LIMIT
from losse.typing import Array
from losse.world.spaces import Choices, FlatBox, one_hot

WIDEST = 1e6
"""Bounds further apart are those of a number format, not of an environment: they do not scale."""


class Inputs:
    """The scaling of states and actions, and the matrix that a model takes.

    Parameters
    ----------
    observations, actions
        The spaces.
    with_actions
        Whether the matrix has columns for the actions; not so in one model per action.

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
        observations: FlatBox | Choices,
        actions: FlatBox | Choices,
        *,
        with_actions: bool = True,
    ) -> None:
        self._actions = actions if with_actions else None
        parts = [_scaling(observations)]
        if with_actions and not actions.discrete:
            parts.append(_scaling(actions))
        self.shift, self.factor, self._limit = np.concatenate(parts, axis=1)
        self._learned = np.isnan(self.shift)
        self.shift[self._learned] = 0.0
        self.factor[self._learned] = 1.0

    @property
    def bounded(self) -> bool:
        """Whether bounds settle the scaling, so that nothing needs to be learned."""
        return not self._learned.any()

    @property
    def width(self) -> int:
        """Columns of the matrix."""
        hot = self._actions.width if self._actions is not None and self._actions.discrete else 0
        return len(self.shift) + hot

    def learn(self, states: Array, actions: npt.NDArray[np.generic]) -> None:
        """Scale what has no bounds by the mean and standard deviation of these rows."""
        if self.bounded:
            return
        rows = self._numbers(states, actions)[:, self._learned]
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        # Rounding is no spread, and its inverse must be finite.
        constant = spread <= np.maximum(1e-12 * np.abs(rows).max(axis=0), 1e-100)
        self.shift[self._learned] = mean
        self.factor[self._learned] = 1.0 / np.where(constant, 1.0, spread)

    def matrix(self, states: Array, actions: npt.NDArray[np.generic]) -> Array:
        """[scaled state | scaled or one-hot action], one row each."""
        rows = self._numbers(states, actions) - self.shift
        with np.errstate(over="ignore"):  # to be clipped
            rows *= self.factor
        np.clip(rows, -self._limit, self._limit, out=rows)
        if self._actions is None or not self._actions.discrete:
            return rows
        hot = one_hot(actions.astype(np.int64), self._actions.width)
        return np.concatenate([rows, hot * np.sqrt(self._actions.width)], axis=1)

    def _numbers(self, states: Array, actions: npt.NDArray[np.generic]) -> Array:
        if self._actions is None or self._actions.discrete:
            return states
        return np.concatenate([states, actions], axis=1)


def _scaling(space: FlatBox | Choices) -> tuple[Array, Array, Array]:
    """Shift, factor and limit of each number; a shift of NaN where there are no bounds to tell."""
    n = space.width
    if space.discrete:
        return np.zeros(n), np.full(n, np.sqrt(n)), np.full(n, np.inf)
    low, high = space.low, space.high
    # A number that can take one value only says nothing: any factor will do.
    span = np.where(high > low, high - low, 2 * LIMIT)
    known = span <= WIDEST  # not so for infinity
    with np.errstate(invalid="ignore"):
        shift = np.where(known, (low + high) / 2, np.nan)
    return shift, 2 * LIMIT / span, np.full(n, LIMIT)
