"""Following the leader itself: the best fit of all data so far, after every batch.

Three methods share the work. While samples are fewer than features, the leader comes from a
system with one unknown per sample (`sample_space`). Later, models of moderate size keep
an inverse (`tracked_inverse`), large ones iterate (`conjugate`).
"""

from losse.encoders import Features
from losse.encoders.features import Array
from losse.ftl.conjugate import ConjugateGradients
from losse.ftl.memory import SQUARE_LIMIT, Memory
from losse.ftl.sample_space import SampleSpace
from losse.ftl.solver import Solver
from losse.ftl.tracked_inverse import TrackedInverse

SAMPLE_LIMIT = 1500
"""Samples up to which large models solve a system in sample space; others do up to D / 2."""
SMALLEST_RIDGE = 1e-10
"""Below this an inverse has no correct digits left."""


class ExactSolver(Solver):
    """Within one percent of the smallest possible objective after every batch.

    ``iterations`` limits the conjugate gradients per batch in large models; None iterates until
    that percent is reached.
    """

    def __init__(self, memory: Memory, ridge: float, iterations: int | None = None) -> None:
        super().__init__(memory, max(ridge, SMALLEST_RIDGE))
        self._iterations = iterations
        self._large = memory.dimension > SQUARE_LIMIT
        limit = SAMPLE_LIMIT if self._large else max(1, memory.dimension // 2)
        self._samples: SampleSpace | None = SampleSpace(limit, memory.B.shape[1])
        self._follower: TrackedInverse | ConjugateGradients | None = None

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch into the memories and follow the leader."""
        self.memory.add(features, Y, weights)
        if self._samples is not None:
            if self._samples.size + len(features) <= self._samples.limit:
                self._samples.add(features, Y, weights, self.ridge * self.memory.total)
                self.weights[:] = self._samples.leader()
                return
            self._samples = None
        if self._follower is None:
            self._follower = self._new_follower()
        else:
            self._follower.learn(features, Y, weights)
        self.weights[:] = self._follower.weights

    def refresh(self) -> None:
        """The next batch starts from the memories alone."""
        self._samples = None
        self._follower = None

    def _new_follower(self) -> TrackedInverse | ConjugateGradients:
        if not self._large:
            return TrackedInverse(self.memory, self.ridge)
        follower = ConjugateGradients(
            self.memory, self.ridge, self.weights.copy(), self._iterations
        )
        follower.solve()
        return follower
