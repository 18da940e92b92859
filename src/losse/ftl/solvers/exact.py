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
from losse.ftl.deferred import MANY
from losse.ftl.memories.base import Memory
from losse.ftl.solvers.base import PROMISE, LeaderWarning, Solver
from losse.ftl.solvers.conjugate import (
    EXCESS,
    RENEWAL,
    ConjugateGradients,
    approach_leader,
    take_out,
)
from losse.ftl.solvers.descent import Descent
from losse.ftl.solvers.renewal import Renewal, worthwhile
from losse.ftl.solvers.sample_space import SampleSpace
from losse.ftl.solvers.tracked_inverse import TrackedInverse, read_rival
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import Work, finished

if TYPE_CHECKING:
    from losse.ftl.targets import Change

SAMPLE_LIMIT = 1500
"""Samples up to which large models solve a system in sample space; others do up to D / 2."""
FEW = MANY * 3 // 2
"""Rows that may still have to enter A when an inverse is begun: others come while A is read."""
ROOM = 512
"""Samples that are taken in while an inverse is made."""
UNKNOWN = 1e-9
"""Leverages below which rounding shows: they count as not known."""
OWED = "samples without A"
"""Method of a file that leaves A out, since the samples make it."""
SMALLEST_RIDGE = {"float64": 1e-10, "float32": 1e-6}
"""Ridges below which an inverse has no correct digits left, by the precision of A."""


CANCELLED = 1e-7
"""The same, beyond which an inverse is not made from samples."""
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
        self._gathered: Features | None = None  # all samples, until the weights follow
        self._renewal: Renewal | None = None
        self._wanted: float | None = None  # ridge for which an inverse is to be made
        self._trace: float | None = 0.0  # of A

    def learn(self, features: Features, Y: Array, weights: Array) -> Array | None:
        """Take a batch into the memories and follow the leader; see `Solver.learn`."""
        self.spent = 0.0
        self._renew_if_due(len(features))
        if self._samples is None or self._renewal is not None:
            holds = self._renewal is not None and self._renewal.reads
            self.memory.add_soon(features, Y, weights, hold=holds)
        else:
            self.memory.add(features, Y, weights)
        if self._trace is not None:
            self._trace += features.size(weights)
        if self._doubtful:
            self._take_wanted()
            self._samples = self._renewal = None
            if not self.memory.large:
                self._factorise()
                return None
        weighted = self._follow(features, Y, weights)
        if self._renewal is not None:
            self._advance(features, Y, weights)
        return None if weighted is None else np.where(weighted > UNKNOWN, weighted / weights, 0.0)

    def _follow(self, features: Features, Y: Array, weights: Array) -> Array | None:
        """Let the weights follow a batch that is in the memories.

        Returns the leverages of its rows before, each times its weight.
        """
        leverages = None
        if self._samples is not None and self._samples.has_room(len(features)):
            leverages = self._samples.add(features, Y, weights, self.penalty)
            if self._samples.excess(self.penalty) <= EXCESS:
                self.weights[:] = self._samples.leader()
                return leverages
        self._samples = None
        if self._follower is None:
            self._take_wanted()
            self._follower, self._renewal = self._new_follower(), None
        elif isinstance(self._follower, TrackedInverse):
            leverages = self._follower.learn(features, Y, weights)
        else:
            self._follower.learn(features, Y, weights)
        self.spent += self._follower.spent
        self.weights[:] = self._follower.weights
        self._review(self._follower)
        return leverages

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
        finished(self._verifying())

    def _verifying(self) -> Work[None]:
        """What `_verify` does, as work in units."""
        if not self.memory.large:
            R = yield from self.memory.residuals(self.weights, self.penalty)
            if self.certificate(PROMISE, R) > PROMISE:
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
        return self._trace_of_sums * sys.float_info.epsilon > DOUBT * self.penalty

    @property
    def _trace_of_sums(self) -> float:
        if self._trace is None:
            self._trace = float(self.memory.diagonal().sum())
        return self._trace

    @property
    def busy(self) -> bool:
        """Whether another inverse is in the making."""
        return self._renewal is not None and self._samples is None

    def _renew_if_due(self, rows: int) -> None:
        """Begin to make an inverse when the method at work comes to its end."""
        memory = self.memory
        if self._renewal is not None or memory.large:
            return
        if self._samples is not None:
            few = self._few if worthwhile(memory, rows) else self._half
            due = self._samples.size + rows > few
        else:
            off = isinstance(self._follower, TrackedInverse) and self._follower.off > 1.0
            due = off or self._wanted is not None
        if not due:
            return
        ridge = self.ridge if self._wanted is None else self._wanted
        if memory.total == 0.0 or not worthwhile(memory, rows):
            self._samples = self._follower = self._wanted = None
            self.ridge = ridge
        elif memory.waiting <= FEW:  # else others are about to enter A
            self._renewal = Renewal(memory, ridge, self._no_features)
            samples = self._samples if self._digits_left else None
            self._renewal.begin(None if samples is None else samples.features)

    @property
    def _digits_left(self) -> bool:
        """Whether an inverse can be made from samples: with a ridge that matters."""
        return self._trace_of_sums * sys.float_info.epsilon <= CANCELLED * self.penalty

    def _advance(self, features: Features, Y: Array, weights: Array) -> None:
        assert self._renewal is not None
        try:
            ridge = self.ridge if self._wanted is None else self._wanted
            inverse = self._renewal.advance(
                features, Y, weights, self._with_residual(), ridge, self.spent
            )
            self.spent += self._renewal.spent
        except np.linalg.LinAlgError:  # rounding forbids it
            self.refresh()
            return
        if inverse is not None:
            self._samples, self._follower, self._renewal = None, inverse, None
            self.ridge, self._wanted = inverse.ridge, None
            self.weights[:] = inverse.weights
            self._review(inverse)

    def _with_residual(self) -> tuple[Array, Array, float]:
        """The weights, their residual B - (A + lambda I) W, and lambda."""
        if self._samples is not None:
            # The best weights for lambda' have (lambda' - lambda) W.
            return self.weights, np.zeros_like(self.weights), self._samples.penalty
        assert isinstance(self._follower, TrackedInverse)
        return self.weights, *self._follower.residual()

    def gathering(self, features: Features, Y: Array, weights: Array) -> Work[None]:
        """Take many samples in, as work in units; the weights follow with `following`."""
        known = self._gathered if self._samples is None else self._samples.features
        self._gathered = None
        if known is not None and len(known) + len(features) <= self._half:
            self._gathered = known.joined(features.scaled(np.sqrt(weights)))
        few = self._samples is not None and self._samples.size + len(features) <= self._few
        self._take_wanted()
        # As single batches would, so that files can leave A out.
        yield from self.memory.adding(features, Y, weights, scattered=few)
        self._follower = self._renewal = self._trace = None
        if self._samples is not None and few:
            yield from self._samples.adding(features, Y, weights, self.penalty)
        else:
            self._samples = None

    def following(self) -> Work[None]:
        """Let the weights follow what was gathered, as work in units."""
        if self._doubtful or self.memory.large or self._samples is not None:
            self.solve()
            yield self.leader_cost
        else:
            yield from self._inverting()
            yield from self._verifying()

    def catching_up(self, features: Features, Y: Array, weights: Array) -> Work[None]:
        """What `learn` does for many samples, as work in units."""
        follower = self._follower
        if self._samples is not None or not isinstance(follower, TrackedInverse) or self._doubtful:
            yield from super().catching_up(features, Y, weights)
            return
        self._renewal = None
        yield from self.memory.adding(features, Y, weights, scattered=False)
        self._trace = None
        yield from follower.following(features, Y, weights)
        self.weights[:] = follower.weights

    def solving(self) -> Work[None]:
        """What `solve` does, as work in units."""
        if self._doubtful or self.memory.large or self._samples is not None:
            yield from super().solving()
        else:
            yield from self._inverting()
            assert isinstance(self._follower, TrackedInverse)
            yield from self._follower.refining()
            self.weights[:] = self._follower.weights
            yield from self._verifying()

    def retune(self, ridge: float) -> None:
        """Let the weights follow the leader for another ridge.

        Where an inverse for another one would be slow at that, and takes a while to make, they do
        when there is an inverse for this ridge.
        """
        renewal, follower = self._renewal, self._follower
        self._renewal = self._wanted = None
        if not isinstance(follower, TrackedInverse):
            self.ridge = ridge
            self.solve()
            if renewal is not None and self._samples is not None and renewal.suits(ridge):
                self._renewal = renewal
        elif follower.off_for(ridge) > 1.0 and worthwhile(self.memory, 1):
            self._wanted = ridge
        else:
            self.ridge = ridge
            follower.retune(ridge)
            self.weights[:] = follower.weights
            self._review(follower)

    def _inverting(self) -> Work[None]:
        self._follower = None
        follower = TrackedInverse(self.memory, self.ridge)
        yield from follower.rebuilding(self._gathered if self._digits_left else None)
        self._gathered = None
        follower.renewed = False
        self._follower = follower
        self.weights[:] = follower.weights

    def descent_to(self, ridge: float) -> Descent | None:
        """A descent to nearly the best weights for another ridge; None if `leader` is as good."""
        if isinstance(self._follower, TrackedInverse):
            return self._follower.descent_to(ridge)
        return None

    def approach(self, descent: Descent) -> None:
        """Do a part of a step of a descent, with the inverse that is at hand."""
        if not isinstance(self._follower, TrackedInverse):
            self._follower = self._new_inverse()
        self._follower.approach(descent, 1)

    def read_descent(self, saved: StateReader) -> Descent | None:
        """A descent that a checkpoint has."""
        return read_rival(saved, self.weights.shape, self.memory.n_outputs)

    @property
    def row_cost(self) -> float:
        """Operations for learning one of several samples, about."""
        return 20.0 * super().row_cost

    @property
    def leader_cost(self) -> float:
        """Operations of `leader`, about."""
        if self._samples is not None:
            return 0.7 * float(self._samples.size) ** 3
        if isinstance(self._follower, TrackedInverse):
            return self._follower.leader_cost
        return super().leader_cost

    def leverages(self, features: Features) -> Array | None:
        """phi^T (A + lambda I)^-1 phi of rows, unless this model iterates or factorises."""
        if self._samples is not None:
            return self._samples.leverages(features)
        return None if self.inverse is None else self.inverse.leverages(features)

    @property
    def inverse(self) -> TrackedInverse | None:
        """The inverse that is kept current, once samples are many."""
        return self._follower if isinstance(self._follower, TrackedInverse) else None

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
        self._renewal = None
        self._trace = None

    def _take_wanted(self) -> None:
        """Have the ridge that is wanted without waiting for its inverse."""
        if self._wanted is not None:
            self.ridge, self._wanted = self._wanted, None

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
            self._renewal = None
        else:
            self.refresh()

    def solve(self) -> None:
        """Make the weights the leader of the memories as they are now."""
        self._take_wanted()
        self._renewal = None
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
        if isinstance(follower, TrackedInverse) and len(features) <= MANY:
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
        self._renewal = None

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
        # To make the trace from A would let rows enter A that wait.
        own |= {"trace": self._trace, "renewing": self._renewal is not None}
        own["wanted"] = self._wanted
        if self._renewal is not None:
            own |= nested("renewal", self._renewal.state())
        return state | own

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        self.refresh()
        self._wanted = None
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
        if saved.has("trace") and saved.value("trace") is not None:
            self._trace = saved.number("trace", at_least=0.0)
        if saved.has("wanted") and saved.value("wanted") is not None:
            self._wanted = saved.positive("wanted")
        if saved.has("renewing") and saved.flag("renewing"):
            self._renewal = Renewal(self.memory, self.ridge, self._no_features)
            samples = None if self._samples is None else self._samples.features
            self._renewal.restore(saved.part("renewal"), samples)

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
        room = ROOM if worthwhile(self.memory, 1) else 0
        limit = SAMPLE_LIMIT if self.memory.large else self._half + room
        return SampleSpace(limit, self._no_features, self.memory.n_outputs, self.memory.B.shape[1])

    @property
    def _few(self) -> int:
        """Samples up to which a system in sample space takes less than a row with an inverse."""
        return self._half // 2 if worthwhile(self.memory, 1) else self._half

    @property
    def _half(self) -> int:
        """Samples up to which a system in sample space is cheaper than an inverse."""
        return max(1, self.memory.dimension // 2)

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
