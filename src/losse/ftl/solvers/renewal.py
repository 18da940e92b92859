"""`Renewal`: an inverse in the making, beside the method at work, while rows keep coming.

An inverse takes as long as some thousand rows. So it is made of the sums as they are when there is
room for it, a few blocks of columns for each row that comes; then it follows the rows that came in
the meantime, faster than others come.
"""

from __future__ import annotations

import numpy as np

from losse.encoders.features import Features
from losse.ftl.memories.base import Memory
from losse.ftl.solvers.inversion import Inversion
from losse.ftl.solvers.tracked_inverse import GROWTH, TrackedInverse
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import finished

SUITABLE = 8.0
"""Factor between two ridges for which the same inverse will do."""
PER_ROW = 1e8
"""Cost that a row pays for the inverse."""
FASTER, AT_LEAST = 2, 4
"""Rows that came in the meantime and are followed with each batch: its own times this, and more."""


def worthwhile(memory: Memory, rows: int) -> bool:
    """Whether an inverse takes so much longer than a batch that it is better made beside others."""
    return float(memory.dimension) ** 3 > 2 * PER_ROW * rows and 8 * rows < memory.dimension


class Renewal:
    """A `TrackedInverse` of the memories, and of all rows that `advance` brings."""

    def __init__(self, memory: Memory, ridge: float, no_features: Features) -> None:
        self._memory = memory
        self._ridge = ridge
        self._credit = 0.0
        self._waiting = no_features
        self._inverse: TrackedInverse | None = None
        self._inversion: Inversion | None = None

    def begin(self) -> None:
        """Start with the ridge, and soon with the memories."""
        penalty = self._ridge * self._memory.total * np.sqrt(GROWTH)
        self._inversion = Inversion(self._memory, penalty)

    def suits(self, ridge: float) -> bool:
        """Whether the inverse will do for another ridge, until that has one of its own."""
        return 1 / SUITABLE <= ridge / self._ridge <= SUITABLE

    def advance(
        self, features: Features, weights: Array, W: Array, ridge: float
    ) -> TrackedInverse | None:
        """Do the share of a batch; return the inverse when it has followed all rows.

        It begins with the weights ``W`` and a suitable ridge. Raises `numpy.linalg.LinAlgError`
        where rounding forbids an inverse.
        """
        n = len(features)
        if self._inversion is None or self._inversion.ready:
            self._waiting = self._waiting.joined(features.scaled(np.sqrt(weights)))
        if self._inversion is not None:
            self._credit += PER_ROW * n
            if self._inversion.done:
                self._inverse = TrackedInverse(self._memory, ridge)
                finished(self._inverse.taking(self._inversion))
                self._inversion = None
            while self._inversion and self._credit > 0 and not self._inversion.done:
                self._credit -= self._inversion.step()
            return None
        assert self._inverse is not None
        some = FASTER * n + AT_LEAST
        self._inverse.follow_only(self._waiting[:some])
        self._waiting = self._waiting[some:]
        if len(self._waiting):
            return None
        self._inverse.ridge = ridge
        self._inverse.begin_at(W)
        return self._inverse

    def state(self) -> State:
        """Values for a checkpoint."""
        own: State = {"credit": self._credit, "waiting": len(self._waiting), "ridge": self._ridge}
        own |= {"made": self._inverse is not None} | nested("rows", self._waiting.state())
        if self._inversion is not None:
            return own | nested("inversion", self._inversion.state())
        assert self._inverse is not None
        return own | nested("inverse", self._inverse.state())

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._ridge = saved.positive("ridge") if saved.has("ridge") else self._ridge
        self._credit = saved.number("credit")
        self._waiting = self._waiting.restored(saved.part("rows"), saved.count("waiting"))
        if saved.flag("made"):
            self._inverse = TrackedInverse(self._memory, self._ridge)
            self._inverse.restore(saved.part("inverse"), self._inverse.weights)
        else:
            self._inversion = Inversion.read(saved.part("inversion"), self._memory)
