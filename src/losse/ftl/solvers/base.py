"""`Solver`: the memories, the weights, and ways to change both together."""

import math
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from sklearn.exceptions import ConvergenceWarning

from losse._kernels.simd import aligned
from losse.encoders.features import Features
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.ftl.solvers.conjugate import leader_for
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import Work

if TYPE_CHECKING:
    from losse.ftl.solvers.descent import Descent
    from losse.ftl.solvers.sample_space import SampleSpace
    from losse.ftl.solvers.tracked_inverse import TrackedInverse
    from losse.ftl.targets import Change


PROMISE = 0.01
"""Share of the smallest possible objective by which solvers that reach the leader may miss it."""
AT_ONCE = 2
"""Samples of many that are learned at once."""


class LeaderWarning(ConvergenceWarning):
    """A solver that promises the leader cannot tell that its weights are within a percent of it."""


class Solver(ABC):
    """Weights that stay close to the leader of all samples given, and the memories behind them.

    The leader minimises sum w ||y - W^T phi||^2 + ridge * total * ||W||^2. ``weights`` are (D, S)
    with padded rows, as B is.
    """

    smallest_ridge = 0.0
    """Ridge below which rounding decides."""
    spent = 0.0
    """Cost of the work that the last batch did for later ones."""
    approximate = True
    """Whether the weights approach the leader, rather than being it but for a percent."""

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        self.weights: Array = aligned(memory.B.shape)
        self._told = False

    @abstractmethod
    def learn(self, features: Features, Y: Array, weights: Array) -> Array | None:
        """Take a batch into the memories and follow the leader; ``Y`` has padded rows.

        Returns phi^T (A + lambda I)^-1 phi of the rows before, where that costs nothing; zero for
        rows of which it is not known.
        """

    def leverages(self, features: Features) -> Array | None:
        """phi^T (A + lambda I)^-1 phi of rows, where an inverse is at hand."""
        return None

    @abstractmethod
    def refresh(self) -> None:
        """Forget all that was derived from the memories, because they were changed."""

    def solve(self) -> None:
        """Make the weights the leader of the memories as they are now."""
        self.weights[:] = ridge_solve(self.memory.square(), self.penalty, self.memory.B)
        self.refresh()

    def leader(self, ridge: float) -> Array:
        """The best weights for another ridge, (D, S); nearly so in large models."""
        if self.memory.large:
            return leader_for(self.memory, ridge, self.weights)
        return ridge_solve(self.memory.square(), ridge * self.memory.total, self.memory.B)

    def gathering(self, features: Features, Y: Array, weights: Array) -> Work[None]:
        """Take many samples in, as work in units; the weights may follow with `following`."""
        self.learn(features, Y, weights)
        yield len(features) * self.row_cost

    def following(self) -> Work[None]:
        """Let the weights follow what was gathered, as work in units."""
        yield 0.0

    def solving(self) -> Work[None]:
        """What `solve` does, as work in units."""
        self.solve()
        yield self.leader_cost

    def retune(self, ridge: float) -> None:
        """Let the weights follow the leader for another ridge, now or soon."""
        self.ridge = ridge
        self.solve()

    def retuning(self, ridge: float) -> Work[None]:
        """Make the weights the leader for another ridge, as work in units."""
        self.ridge = ridge
        yield from self.solving()

    @property
    def busy(self) -> bool:
        """Whether batches to come have work to do that other work had better wait for."""
        return False

    def catching_up(self, features: Features, Y: Array, weights: Array) -> Work[None]:
        """What `learn` does for many samples, as work in units."""
        for part in (slice(k, k + AT_ONCE) for k in range(0, len(features), AT_ONCE)):
            self.learn(features[part], Y[part], weights[part])
            yield AT_ONCE * self.row_cost

    def descent_to(self, ridge: float) -> "Descent | None":
        """A descent to nearly the best weights for another ridge; None if `leader` is as good."""
        return None

    def approach(self, descent: "Descent") -> None:
        """Do a part of a step of a descent."""
        raise NotImplementedError

    def read_descent(self, saved: StateReader) -> "Descent | None":
        """A descent that a checkpoint has; None if this solver has none."""
        return None

    @property
    def row_cost(self) -> float:
        """Operations for learning one of several samples, about."""
        return float(self.memory.dimension) ** 2

    @property
    def leader_cost(self) -> float:
        """Operations of `leader`, about."""
        return float(self.memory.dimension) ** 3

    @property
    def part_cost(self) -> float:
        """Operations of a part of a step of a descent, about."""
        return 0.5 * self.memory.dimension**2 * self.weights.shape[1]

    def unlearn(self, features: Features, Y: Array, weights: Array, *, everything: bool) -> None:
        """Take a batch out of the memories, and make the weights the leader of what is left.

        Raises `NotLearnedError`, and changes nothing, if what would be left cannot be a sum of
        squares; and `ValueError` if it would weigh less than the rounding of the sums.
        """
        memory = self.memory
        memory.require(features, Y, weights)
        left = memory.total - float(weights.sum())
        if left <= memory.rounding * memory.total:
            if not everything:
                raise ValueError(
                    "X, y cannot be unlearned: the rows that would be left weigh less than "
                    f"{memory.rounding:.0e} of all, and are lost in the rounding of these. Unlearn "
                    "fewer rows, or start a new model."
                )
            self.clear()
            return
        self._unlearn(features, Y, weights, self.ridge * left)

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        memory = self.memory
        A = memory.square()
        floor = memory.rounding * float(A.diagonal().max())
        features.add_products(-weights, A)
        factor, used = ridge_cholesky(A, penalty)
        if used > max(penalty, floor):
            raise NotLearnedError()
        B = memory.B.copy()
        features.add_transposed(Y, -weights, B)
        W = np.asarray(dpotrs(factor, B, lower=1)[0])
        memory.require_targets(W, B, Y, weights)
        memory.add(features, Y, -weights)
        self.weights[:] = W
        self.refresh()

    def absorb(self, other: "Solver", factor: float, change: "Change | None") -> None:
        """Add another solver's memories, in its units; `solve` is to follow."""
        self.memory.absorb(other.memory, factor, change)
        self.refresh()

    def rescale(self, factor: float) -> None:
        """Multiply all samples' weights by a factor, which leaves the leader where it is."""
        self.memory.scale(factor)
        self.refresh()

    def clear(self) -> None:
        """Forget everything."""
        self.memory.clear()
        self.weights[:] = 0.0
        self.refresh()

    def certificate(self, enough: float = 1e-3, residual: Array | None = None) -> float:
        r"""Bound on how far the objective is above the smallest possible one, as a share of that.

        With the residual :math:`R = B - (A + \lambda I) W`, made anew from the memories, the
        objective exceeds its minimum by :math:`R^T (A + \lambda I)^{-1} R`, which is at most
        :math:`\|R\|^2 / \lambda`. Where this is not ``enough``, A is factorised, unless it is
        large. An allowance for the rounding of the sums is added. The residual may be at hand.
        """
        memory, W, penalty = self.memory, self.weights, self.penalty
        if memory.total == 0.0:
            return 0.0
        R = memory.residual(W, penalty) if residual is None else residual
        objective = memory.objective(W, R, penalty)
        gap = _added(float((R * R).sum()) / penalty, memory.doubt(W, 1.0 / penalty))
        if gap > enough / (1.0 + enough) * objective and not memory.large:
            factor, used = ridge_cholesky(memory.square(), penalty)
            tight = max(float((R * dpotrs(factor, R, lower=1)[0]).sum()), 0.0)
            diagonal = dpotri(factor, lower=1, overwrite_c=1)[0].diagonal()
            gap = min(gap, used / penalty * _added(tight, memory.doubt(W, diagonal)))
        if gap == 0.0:
            return 0.0
        return gap / (objective - gap) if gap < objective else math.inf

    def _tell(self) -> None:
        """Warn, once, if the weights are not certainly within a percent of the leader."""
        if not self._told and self.certificate(PROMISE) > PROMISE:
            self._told = True
            single = "" if self.memory.A.dtype == np.float64 else ', or dtype="float64"'
            warnings.warn(
                "the weights may be more than 1 % above the best fit (see certificate_): rounding "
                f"outweighs the ridge, {self.ridge:.1e}. Scale the inputs, e.g. by "
                f'scaling="standard", or use a larger ridge{single}.',
                LeaderWarning,
                stacklevel=2,
            )

    @property
    def samples(self) -> "SampleSpace | None":
        """All samples, in a solver that still keeps them."""
        return None

    @property
    def inverse(self) -> "TrackedInverse | None":
        """The inverse that is kept current, in a solver that has one."""
        return None

    @property
    def penalty(self) -> float:
        """Lambda, the ridge in the units of A."""
        return self.ridge * self.memory.total

    def state(self) -> State:
        """Values for a checkpoint."""
        weights = self.weights[:, : self.memory.n_outputs]
        return nested("memory", self.memory.state()) | {"weights": weights}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.memory.restore(saved.part("memory"))
        saved.columns("weights", out=self.weights, width=self.memory.n_outputs)


def _added(first: float, second: float) -> float:
    """Square of the largest sum of two vectors whose squares are these."""
    return (math.sqrt(first) + math.sqrt(second)) ** 2


def ridge_cholesky(A: Array, ridge: float) -> tuple[Array, float]:
    """Cholesky factor of A + ridge I, the lower triangle of A's transpose in place; and the ridge.

    Where rounding makes the sum indefinite, the ridge grows tenfold until it is not.
    """
    original = A.diagonal().copy()
    while True:
        np.einsum("ii->i", A)[:] = original + ridge
        # LAPACK sees the transpose and works on what is our upper triangle.
        factor, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return np.asarray(factor), ridge
        ridge = raised(ridge, float(original.max()))
        lower = np.tril(A, -1)
        np.add(lower, lower.T, out=A)


def raised(ridge: float, largest: float) -> float:
    """A ridge that is larger, for a matrix with this largest entry that was not definite.

    >>> raised(1.0, 1e4)
    10.0
    """
    ridge = max(10 * ridge, 1e-15 * largest)
    if not ridge < math.inf:
        raise np.linalg.LinAlgError("sums of products are not finite: the model is damaged.")
    return ridge


def ridge_solve(A: Array, ridge: float, B: Array) -> Array:
    """(A + ridge I)^-1 B, overwriting A."""
    factor, _ = ridge_cholesky(A, ridge)
    return np.asarray(dpotrs(factor, B, lower=1)[0])
