"""What every solver is: the memories, the weights, and ways to change both together."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from losse._kernels.accumulate import add_square
from losse._kernels.simd import aligned
from losse.encoders import Features, SparseFeatures
from losse.ftl.memory import Memory, NotLearnedError
from losse.ftl.sample_space import SampleSpace
from losse.storage.state import State, StateReader, nested
from losse.typing import Array


class Solver(ABC):
    """Keeps ``weights`` (D, S; rows padded) close to the leader of all that it was given.

    The leader minimises sum w ||y - W^T phi||^2 + ridge * total * ||W||^2.
    """

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.memory = memory
        self.ridge = ridge
        self.weights: Array = aligned(memory.B.shape)

    @abstractmethod
    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch into the memories and renew the weights."""

    @abstractmethod
    def refresh(self) -> None:
        """Forget all that was derived from the memories, because they were changed."""

    def renew(self) -> None:
        """Make the weights the leader of the memories as they are now."""
        self.weights[:] = ridge_solve(self.memory.square(), self.penalty, self.memory.B)
        self.refresh()

    def unlearn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch out of the memories, and make the weights the leader of what is left.

        Raises `NotLearnedError`, and changes nothing, if what would be left cannot be a sum of
        squares.
        """
        memory = self.memory
        memory.require(features, Y, weights)
        left = memory.total - float(weights.sum())
        if left <= memory.rounding * memory.total:
            self.clear()
            return
        self._unlearn(features, Y, weights, self.ridge * left)

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        memory = self.memory
        A = memory.square()
        floor = memory.rounding * float(A.diagonal().max())
        if isinstance(features, SparseFeatures):
            add_square(A, features.indices, features.values, -weights)
        else:
            A -= (features.values * weights[:, None]).T @ features.values
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

    def absorb(self, other: "Solver", factor: float) -> None:
        """Add another solver's memories; `renew` is to follow."""
        self.memory.absorb(other.memory, factor)
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

    @property
    def samples(self) -> SampleSpace | None:
        """All samples, in a solver that still keeps them."""
        return None

    @property
    def penalty(self) -> float:
        """Lambda, the ridge in the units of A."""
        return self.ridge * self.memory.total

    def state(self) -> State:
        """What a checkpoint keeps."""
        return nested("memory", self.memory.state()) | {"weights": self.weights}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.memory.restore(saved.part("memory"))
        saved.array("weights", out=self.weights)


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
        ridge = max(10 * ridge, 1e-15 * float(original.max()))
        lower = np.tril(A, -1)
        np.add(lower, lower.T, out=A)


def ridge_solve(A: Array, ridge: float, B: Array) -> Array:
    """(A + ridge I)^-1 B, overwriting A."""
    factor, _ = ridge_cholesky(A, ridge)
    return np.asarray(dpotrs(factor, B, lower=1)[0])
