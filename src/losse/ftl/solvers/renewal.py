"""`Renewal`: an inverse in the making, beside the method at work, while rows keep coming.

An inverse takes as long as some hundred rows. So it is made of the sums as they are now, a piece
for each row that comes; then it follows the rows that came in the meantime, faster than others
come; and then its weights come near the leader. Only then it takes over.
"""

from __future__ import annotations

import numpy as np

from losse.encoders.features import Features
from losse.ftl.memories.base import Memory
from losse.ftl.solvers.inversion import Inversion, SampleInversion
from losse.ftl.solvers.tracked_inverse import GROWTH, TrackedInverse
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

Leader = tuple[Array, Array, float]
"""Weights, their residual for some lambda, and lambda."""
SUITABLE, PATIENCE = (0.6, 4.0), 24
"""Factors of the ridge for which the same inverse will do, and rows in which the weights should
come near the leader."""
PER_ROW = 1e8
"""Cost that a row pays for the inverse."""
FASTER, FOLLOWED = 2, 5e7
"""Rows that came in the meantime and are followed for each that comes, and the cost of one."""


def worthwhile(memory: Memory, rows: int) -> bool:
    """Whether an inverse takes so much longer than a batch that it is better made beside others."""
    return float(memory.dimension) ** 3 > 2 * PER_ROW * rows and 8 * rows < memory.dimension


class Renewal:
    """A `TrackedInverse` of the memories, and of all rows that `advance` brings."""

    def __init__(self, memory: Memory, ridge: float, no_features: Features) -> None:
        self._memory = memory
        self._ridge = ridge
        self._credit = 0.0
        self.spent = 0.0
        """Cost of the last batch's share."""
        self._left = PATIENCE
        self._waiting = no_features
        self._inverse: TrackedInverse | None = None
        self._inversion: Inversion | SampleInversion | None = None

    def begin(self, samples: Features | None = None) -> None:
        """Start with the memories as they are, or with the samples that they are made of."""
        penalty = self._ridge * self._memory.total * np.sqrt(GROWTH)
        self._waiting = self._waiting[:0]
        if samples is not None:
            self._inversion = SampleInversion(samples, penalty)
            return
        self._inversion = Inversion(self._memory, penalty)
        while self.reads and not self._memory.defers(self._waiting):
            self._inversion.step()

    @property
    def reads(self) -> bool:
        """Whether A is being read, and should stay as it is: rows may wait for a while."""
        return self._inversion is not None and not self._inversion.ready

    def suits(self, ridge: float) -> bool:
        """Whether the inverse will do for another ridge, until that has one of its own."""
        return SUITABLE[0] <= ridge / self._ridge <= SUITABLE[1]

    def advance(
        self,
        features: Features,
        Y: Array,
        weights: Array,
        leader: Leader,
        ridge: float,
        spent: float,
    ) -> TrackedInverse | None:
        """Do the share of a batch, which is in the memories; return the inverse when it is done.

        The batch has ``spent`` some of it already. ``leader`` has the weights to begin with and
        their residual. Raises `numpy.linalg.LinAlgError` where rounding forbids an inverse.
        """
        n, inversion, inverse = len(features), self._inversion, self._inverse
        if inverse is not None and not len(self._waiting):
            self.spent = 2 * FOLLOWED * n
            self._left -= n
            if inverse.ridge != ridge:
                inverse.follow_only(features.scaled(np.sqrt(weights)))
                inverse.ridge = ridge
                inverse.begin_with(*leader)
                return None
            near = inverse.come_near(features, Y, weights, patient=self._left > 0)
            return inverse if near else None
        self._waiting = self._waiting.joined(features.scaled(np.sqrt(weights)))
        if inversion is not None:
            if not inversion.ready and self._waiting_since(inversion) != len(self._waiting):
                self.begin()  # A has changed
            self._work(PER_ROW * n - spent)
            return None
        assert inverse is not None
        some, self.spent = FASTER * n, FASTER * n * FOLLOWED
        inverse.follow_only(self._waiting[:some])
        self._waiting = self._waiting[some:]
        if len(self._waiting):
            return None
        inverse.ridge = ridge
        inverse.begin_with(*leader)
        return inverse if inverse.near else None

    def _waiting_since(self, inversion: Inversion | SampleInversion) -> int:
        """Rows that wait to enter A and came after the inversion began, if A is the same."""
        return self._memory.waiting - inversion.waiting

    def _work(self, payment: float) -> None:
        """Do as much of the inversion as is paid for."""
        assert self._inversion is not None
        self._credit += payment
        self.spent = 0.0
        while self._credit > 0 and not self._inversion.done:
            cost = self._inversion.step()
            self._credit -= cost
            self.spent += cost
        if self._inversion.done:
            self._inverse = TrackedInverse(self._memory, self._ridge)
            self._inverse.take(self._inversion)
            self._inversion = None

    def state(self) -> State:
        """Values for a checkpoint."""
        own: State = {
            "credit": self._credit,
            "left": self._left,
            "waiting": len(self._waiting),
            "ridge": self._ridge,
        }
        own |= {"made": self._inverse is not None} | nested("rows", self._waiting.state())
        if self._inversion is not None:
            own["begun"] = self._inversion.samples
            return own | nested("inversion", self._inversion.state())
        assert self._inverse is not None
        own["weights"] = self._inverse.weights[:, : self._memory.n_outputs]
        own["own_ridge"] = self._inverse.ridge
        return own | nested("inverse", self._inverse.state())

    def restore(self, saved: StateReader, samples: Features | None) -> None:
        """Take over what `state` has returned; ``samples`` are those at hand."""
        self._ridge = saved.positive("ridge") if saved.has("ridge") else self._ridge
        self._credit = saved.number("credit")
        self._left = int(saved.number("left")) if saved.has("left") else PATIENCE
        self._waiting = self._waiting.restored(saved.part("rows"), saved.count("waiting"))
        if saved.flag("made"):
            ridge = saved.positive("own_ridge") if saved.has("own_ridge") else self._ridge
            self._inverse = inverse = TrackedInverse(self._memory, ridge)
            if saved.has_array("weights"):
                saved.columns("weights", out=inverse.weights, width=self._memory.n_outputs)
            inverse.restore(saved.part("inverse"), inverse.weights)
        else:
            part, begun = saved.part("inversion"), 0
            if saved.has("begun"):
                begun = saved.count("begun")
            if begun and samples is not None and begun <= len(samples):
                self._inversion = SampleInversion.read(part, samples[:begun])
            else:
                self._inversion = Inversion.read(part, self._memory)
