"""Units in which a network sees numbers: scaled by bounds, or by the first transitions.

Numbers with finite bounds are mapped from them so that a uniform one has unit variance, and
one-hot actions so that their mean square is one. All other inputs, and all targets, are
standardised by what has been seen: of the first 1000 transitions, and the same from then on, so
that the weights keep their meaning.
"""

from __future__ import annotations

import numpy as np

from losse.scaling import RunningMoments, Scaling, is_constant
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.world.spaces import FlatSpace, joined

WARM_UP = 1000
"""Transitions after which nothing changes any more."""
UNIFORM = 3**0.5
"""A uniform number between plus and minus this has unit variance."""
ROUNDING = 1e-6
"""Share of a number that single precision does not resolve."""
SMALLEST_SPREAD = 1e-30
"""A spread below this has an inverse that leaves the range of single precision in products."""


class Units:
    """Scaling of each column of [inputs | targets], in single precision.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world.spaces import flat
    >>> space = Box(np.array([0, -np.inf]), np.array([6, np.inf]), dtype=np.float64)
    >>> units = Units(flat("obs", space), flat("actions", Discrete(4)), n_targets=1)
    >>> rows = np.array([[0.0, 2.0, 1, 0, 0, 0, 5.0], [1.0, 6.0, 0, 1, 0, 0, 5.0]])
    >>> units.add(rows)
    >>> units.scaling.shift
    array([3., 4., 0., 0., 0., 0., 5.], dtype=float32)
    >>> units.scaling.factor.round(2)
    array([0.58, 0.5 , 2.  , 2.  , 2.  , 2.  , 1.  ], dtype=float32)
    """

    def __init__(self, observations: FlatSpace, actions: FlatSpace, n_targets: int) -> None:
        targets = Scaling(np.full(n_targets, np.nan), np.ones(n_targets)), np.empty(0)
        parts = observations.scaling(UNIFORM), actions.scaling(UNIFORM), targets
        self._bounded, _ = joined(*parts)
        self._free = np.isnan(self._bounded.shift)
        self._moments = RunningMoments(int(self._free.sum()))

    @property
    def scaling(self) -> Scaling:
        """The scaling by the rows so far; a constant column without bounds is only centred."""
        mean, spread = self._moments.mean, np.sqrt(self._moments.variance)
        size = np.maximum(np.abs(mean), SMALLEST_SPREAD / ROUNDING)
        shift, factor = (column.copy() for column in self._bounded)
        shift[self._free] = mean
        factor[self._free] = 1.0 / np.where(is_constant(spread, size, ROUNDING), 1.0, spread)
        return Scaling(shift.astype(np.float32), factor.astype(np.float32))

    def add(self, rows: Array) -> None:
        """Learn from more rows: as many of them as belong to the warm-up."""
        new = rows[: WARM_UP - int(self._moments.weight), self._free]
        if len(new):
            self._moments.add(new, np.ones(len(new)))

    def state(self) -> State:
        """Values for a checkpoint."""
        moments = self._moments
        count = int(moments.weight)
        return {"count": count, "average": moments.mean, "squares": moments.deviations}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._moments.weight = float(saved.count("count", at_most=WARM_UP))
        saved.array("average", out=self._moments.mean)
        saved.array("squares", out=self._moments.deviations)
        if (self._moments.deviations < 0).any():
            saved.refuse("array squares contains negative numbers")
