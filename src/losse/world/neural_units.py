"""In which units does a network see the numbers of an environment?

Numbers with finite bounds are mapped from them so that a uniform one has unit variance, and
one-hot actions so that their mean square is one. All other inputs, and all targets, are
standardised by what has been seen: of the first 1000 transitions, and the same from then on, so
that the weights keep their meaning.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.world.inputs import WIDEST
from losse.world.neural_network import Units
from losse.world.spaces import Choices, FlatBox

WARM_UP = 1000
"""Transitions after which nothing changes any more."""


class RunningUnits:
    """Mean and scale of each column of [inputs | targets].

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world.spaces import flat
    >>> space = Box(np.array([0, -np.inf]), np.array([6, np.inf]), dtype=np.float64)
    >>> units = RunningUnits(flat("obs", space), flat("actions", Discrete(4)), n_targets=1)
    >>> rows = np.array([[0.0, 2.0, 1, 0, 0, 0, 5.0], [1.0, 6.0, 0, 1, 0, 0, 5.0]])
    >>> units = units.extended(rows)
    >>> units.current.mean
    array([3., 4., 0., 0., 0., 0., 5.], dtype=float32)
    >>> units.current.scale.round(2)
    array([1.73, 2.  , 0.5 , 0.5 , 0.5 , 0.5 , 1.  ], dtype=float32)
    """

    def __init__(
        self, observations: FlatBox | Choices, actions: FlatBox | Choices, n_targets: int
    ) -> None:
        parts = [_bounded(observations), _bounded(actions), np.full((2, n_targets), np.nan)]
        self._mean, self._scale = np.concatenate(parts, axis=1)
        self._free = np.isnan(self._mean)
        n_free = int(self._free.sum())
        self._count = 0
        self._average, self._squares = np.zeros(n_free), np.zeros(n_free)
        self._set()

    def extended(self, rows: Array) -> RunningUnits:
        """Units by more rows: as many of them as belong to the warm-up."""
        new = rows[: WARM_UP - self._count, self._free]
        if not len(new):
            return self
        more = deepcopy(self)
        more._count += len(new)
        # Chan's formula: sums about the mean, without cancellation.
        apart = new.mean(axis=0) - self._average
        share = len(new) / more._count
        more._squares += ((new - new.mean(axis=0)) ** 2).sum(axis=0)
        more._squares += apart**2 * share * self._count
        more._average += apart * share
        more._set()
        return more

    def _set(self) -> None:
        """Mean and scale of the columns without bounds; a constant one is only centred."""
        spread = np.sqrt(self._squares / max(1, self._count))
        constant = spread <= 1e-6 * np.abs(self._average)  # in single precision
        self._mean[self._free] = self._average
        self._scale[self._free] = np.where(constant, 1.0, spread)
        self.current = Units(self._mean.astype(np.float32), self._scale.astype(np.float32))

    def state(self) -> State:
        """What a checkpoint keeps."""
        return {"count": self._count, "average": self._average, "squares": self._squares}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` returned."""
        self._count = saved.count("count", at_most=WARM_UP)
        saved.array("average", out=self._average)
        saved.array("squares", out=self._squares)
        if (self._squares < 0).any():
            saved.refuse("array squares contains negative numbers")
        self._set()


def _bounded(space: FlatBox | Choices) -> Array:
    """Mean and scale by the bounds of each number; NaN where there are none to go by."""
    if isinstance(space, Choices):
        return np.stack([np.zeros(space.width), np.full(space.width, space.width**-0.5)])
    span = np.where(space.high > space.low, space.high - space.low, 1.0)
    with np.errstate(invalid="ignore"):
        mean = (space.low + space.high) / 2
    return np.where(span <= WIDEST, [mean, span / np.sqrt(12)], np.nan)
