"""`ExactSolver`: the leader itself, the best fit of all data so far, after every batch.

Three methods share the work. While samples are fewer than features, the leader comes from a
system with one unknown per sample (`sample_space`). Later, models of moderate size keep
an inverse (`tracked_inverse`), large ones iterate (`conjugate`). Where rounding is too much for
these, as with inputs of 1e8 that are not scaled, A is factorised for every batch, since that loses
the fewest digits. What even that does not reach is said by a `LeaderWarning`.
"""

import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from losse.encoders.features import Features
from losse.ftl.memories.base import Memory
from losse.ftl.solvers.base import PROMISE, LeaderWarning, Solver
from losse.ftl.solvers.conjugate import (
    EXCESS,
    RENEWAL,
    ConjugateGradients,
    approach_leader,
    take_out,
)
from losse.ftl.solvers.sample_space import SampleSpace
from losse.ftl.solvers.tracked_inverse import PENDING, TrackedInverse
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

if TYPE_CHECKING:
    from losse.ftl.targets import Change

SAMPLE_LIMIT = 1500
"""Samples up to which large models solve a system in sample space; others do up to D / 2."""
OWED = "samples without A"
"""Method of a file that leaves A out, since the samples make it."""
SMALLEST_RIDGE = {"float64": 1e-10, "float32": 1e-6}
"""Ridges below which an inverse has no correct digits left, by the precision of A."""


DOUBT = 1e-4
"""Trace of A over lambda, times the rounding of doubles, beyond which A is factorised."""


class ExactSolver(Solver):
    """Within one percent of the smallest possible objective after every batch.

    ``iterations`` limits the conjugate gradients per batch in large models; None iterates until
    that percent is reached.
    """

    approximate = False

    def __init__(
        self, memory: Memory, ridge: float, no_features: Features, iterations: int | None
    ) -> None:
        self.smallest_ridge = SMALLEST_RIDGE[memory.A.dtype.name]
        if ridge < self.smallest_ridge:
            warnings.warn(
                f"ridge={ridge} is out of reach of dtype={memory.A.dtype.name!r}, and counts as "
                f"{self.smallest_ridge}: use at least that.",
                LeaderWarning,
                stacklevel=2,
            )
        super().__init__(memory, max(ridge, self.smallest_ridge))
        self._no_features = no_features
        self._iterations = iterations
        self._samples: SampleSpace | None = self._no_samples()
        self._follower: TrackedInverse | ConjugateGradients | None = None
        self._trace: float | None = 0.0  # of A

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch into the memories and follow the leader."""
        self.memory.add(features, Y, weights)
        if self._trace is not None:
            self._trace += features.size(weights)
        if self._doubtful:
            self._samples = None
            if not self.memory.large:
                self._factorise()
                return
        if self._samples is not None and self._samples.has_room(len(features)):
            self._samples.add(features, Y, weights, self.penalty)
            if self._samples.excess(self.penalty) <= EXCESS:
                self.weights[:] = self._samples.leader()
                return
        self._samples = None
        if self._follower is None:
            self._follower = self._new_follower()
        else:
            self._follower.learn(features, Y, weights)
        self.weights[:] = self._follower.weights
        self._review(self._follower)

    def _review(self, follower: TrackedInverse | ConjugateGradients) -> None:
        """See whether a follower is near the leader, when that is cheap or may not be so."""
        if isinstance(follower, ConjugateGradients):
            if self._iterations is None and (self._doubtful or not follower.is_near()):
                self._tell()
        elif follower.renewed:
            follower.renewed = False
            self._verify()

    def _verify(self) -> None:
        """Make sure that the weights are within a percent of the leader, or say that they are not.

        In large models all has been done already.
        """
        if not self.memory.large:
            if self.certificate(PROMISE) > PROMISE:
                self._factorise()
        elif self._iterations is None:
            self._tell()

    def _factorise(self) -> None:
        """Make the weights the leader by a factorisation of A."""
        super().solve()
        self._tell()

    @property
    def _doubtful(self) -> bool:
        """Whether too many digits would be lost by anything but a factorisation of A."""
        if self._trace is None:
            self._trace = float(self.memory.diagonal().sum())
        return self._trace * sys.float_info.epsilon > DOUBT * self.penalty

    @property
    def samples(self) -> SampleSpace | None:
        """All samples, while they are few."""
        return self._samples

    def leader(self, ridge: float) -> Array:
        """The best weights for another ridge, (D, S); nearly so in large models."""
        if self._samples is not None:
            return self._samples.leader_for(ridge * self.memory.total)
        return super().leader(ridge)

    def refresh(self) -> None:
        """Let the next batch start from the memories alone."""
        self._samples = None
        self._follower = None
        self._trace = None

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._samples = self._no_samples()

    def absorb(self, other: Solver, factor: float, change: "Change | None") -> None:
        """Add another solver's memories, in its units; `solve` is to follow."""
        mine, theirs = self._samples, other.samples
        self.memory.absorb(other.memory, factor, change)
        self._trace = None
        if mine is not None and theirs is not None and mine.size + theirs.size <= mine.limit:
            mine.absorb(theirs, factor, change, self.penalty)
        else:
            self.refresh()

    def solve(self) -> None:
        """Make the weights the leader of the memories as they are now."""
        if self._doubtful and not self.memory.large:
            self._factorise()
            return
        if self._samples is not None:
            self._samples.settle(self.penalty)
            if self._samples.excess(self.penalty) == 0.0:
                self.weights[:] = self._samples.leader()
                return
            self._samples = None
        if self.memory.large:
            iterations = None if self._iterations is None else RENEWAL
            approach_leader(self.memory, self.ridge, self.weights, iterations)
            self._follower = None
        else:
            self._follower = follower = self._new_inverse()
            follower.refine()
            follower.renewed = False
            self.weights[:] = follower.weights
        self._verify()

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        follower = self._follower
        if isinstance(follower, TrackedInverse) and len(features) <= PENDING:
            follower.unlearn(features, Y, weights)
            self._trace = None
            self.weights[:] = follower.weights
            self._verify()
        elif self.memory.large:
            most = None if self._iterations is None else RENEWAL
            take_out(self.memory, self.ridge, self.weights, features, Y, weights, most)
            self.refresh()
            self.solve()  # with what is left as the preconditioner
        else:
            super()._unlearn(features, Y, weights, penalty)
            self._tell()

    def state(self) -> State:
        """Values for a checkpoint, with those of the method at work."""
        own: State = {"method": "none"}
        state = super().state()
        if self._samples is not None:
            own = {"method": "samples"} | nested("samples", self._samples.state())
            if self._samples_make(state["memory.A"]):
                own["method"] = OWED
                state["memory.A"] = np.broadcast_to(
                    state["memory.A"].dtype.type(0), self.memory.A.shape
                )
        elif isinstance(self._follower, TrackedInverse):
            own = {"method": "inverse"} | nested("inverse", self._follower.state())
        elif self._follower is not None:
            own = {"method": "iterations"} | nested("iterations", self._follower.state())
        return state | own

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        self.refresh()
        methods = ("none", "samples", "iterations" if self.memory.large else "inverse", OWED)
        method = saved.word("method", methods)
        if method in ("samples", OWED):
            self._samples = self._no_samples()
            self._samples.restore(saved.part("samples"))
            if method == OWED:
                self._make_from_samples(saved)
        elif method == "inverse":
            inverse = TrackedInverse(self.memory, self.ridge)
            inverse.restore(saved.part(method), self.weights)
            self._follower = inverse
        elif method == "iterations":
            follower = self._new_iteration()
            follower.restore(saved.part(method))
            self._follower = follower

    def _samples_make(self, A: npt.NDArray[np.floating]) -> bool:
        """Whether A is made of the samples at hand, bit for bit, so that files need not have it."""
        if self._samples is None or self.memory.large:
            return False
        made = np.zeros_like(A)
        self._samples.features.add_products(np.ones(self._samples.size), made)
        return np.array_equal(made, A)

    def _make_from_samples(self, saved: StateReader) -> None:
        """Make the A that a file leaves out."""
        assert self._samples is not None
        with np.errstate(over="ignore", invalid="ignore"):
            self._samples.features.add_products(np.ones(self._samples.size), self.memory.A)
        if not np.isfinite(self.memory.A).all():
            saved.refuse("samples are too large")

    def _no_samples(self) -> SampleSpace:
        limit = SAMPLE_LIMIT if self.memory.large else max(1, self.memory.dimension // 2)
        return SampleSpace(limit, self._no_features, self.memory.n_outputs, self.memory.B.shape[1])

    def _new_inverse(self) -> TrackedInverse:
        follower = TrackedInverse(self.memory, self.ridge)
        follower.rebuild()
        return follower

    def _new_follower(self) -> TrackedInverse | ConjugateGradients:
        if not self.memory.large:
            return self._new_inverse()
        follower = self._new_iteration()
        follower.start()
        return follower

    def _new_iteration(self) -> ConjugateGradients:
        return ConjugateGradients(self.memory, self.ridge, self.weights.copy(), self._iterations)
