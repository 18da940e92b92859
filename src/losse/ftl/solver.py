"""What every solver is: the memories, the weights, and a way to learn from a batch."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from losse._kernels.simd import aligned
from losse.encoders import Features
from losse.encoders.features import Array
from losse.ftl.memory import Memory


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

    def rescale(self, factor: float) -> None:
        """Multiply all samples' weights by a factor, which leaves the leader where it is."""
        self.memory.scale(factor)
        self.refresh()

    @abstractmethod
    def refresh(self) -> None:
        """Forget all that was derived from the memories, because they were changed."""


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
