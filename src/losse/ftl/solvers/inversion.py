r"""The inverse of A + lambda I by the sweep operator, a block of columns at a time.

Sweeping the block K of a symmetric matrix M subtracts :math:`M_K^T M_{KK}^{-1} M_K` from all the
rest and puts :math:`M_{KK}^{-1} M_K` and :math:`-M_{KK}^{-1}` in its place. When every block is
swept, :math:`-M^{-1}` is left. This is as many operations, and as exact, as a Cholesky factor and
its inverse, but it is the same small piece of work over and over: it can pause anywhere.
"""

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dtrtri

from losse._kernels.simd import aligned, padded
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work

BLOCK = 64
"""Columns swept at once."""
BAND, COPIED = 256, 50.0
"""Rows copied at once, and operations of a matrix product in the time for each number."""


class Inversion:
    """(A + ridge I)^-1 of a memory's A as it is now, in the making.

    Where rounding makes the sum indefinite, `step` raises `numpy.linalg.LinAlgError`.

    Examples
    --------
    >>> from losse.ftl.memories.square import SquareMemory
    >>> from losse.work import finished
    >>> memory = SquareMemory(200, 1, "float64")
    >>> memory.A[:] = np.cov(np.random.default_rng(0).normal(size=(200, 300)))
    >>> inversion = Inversion(memory, 0.1)
    >>> while not inversion.done:
    ...     inversion.step()
    >>> P = finished(inversion.result())
    >>> bool(np.allclose(P @ (memory.A + 0.1 * np.eye(200)), np.eye(200)))
    True
    """

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.ridge = ridge
        self._size = D = memory.dimension
        self._next = 0
        # What becomes of it has rows of whole lines.
        self._M = aligned((padded(D), padded(D)))
        memory.put_square(self._M[:D, :D])
        np.einsum("ii->i", self._M)[:D] += ridge

    @property
    def done(self) -> bool:
        """Whether every block is swept."""
        return self._next >= self._size

    @property
    def cost(self) -> float:
        """Operations of a step."""
        return float(BLOCK * len(self._M) ** 2)

    def step(self) -> None:
        """Sweep another block. Only the upper triangle is kept."""
        M, first = self._M, self._next
        block = slice(first, min(first + BLOCK, self._size))
        pivot = np.triu(M[block, block])
        L = np.linalg.cholesky(pivot + np.triu(pivot, 1).T)
        inverse = np.tril(dtrtri(L, lower=1)[0])
        rows = np.zeros((len(L), len(M)))
        rows[:, :first] = M[:first, block].T
        rows[:, block.stop :] = M[block, block.stop :]
        half = inverse @ rows
        # LAPACK sees the transpose, and works on what is our upper triangle.
        dsyrk(-1.0, half.T, beta=1.0, c=M.T, lower=True, overwrite_c=True)
        swept = inverse.T @ half
        M[:first, block] = swept[:, :first].T
        M[block, block.stop :] = swept[:, block.stop :]
        M[block, block] = -(inverse.T @ inverse)
        self._next = block.stop

    def result(self) -> Work[Array]:
        """The inverse when it is done, as work in units; its rows and columns are padded."""
        M, size = self._M, len(self._M)
        for first in range(0, size, BAND):
            band = slice(first, min(first + BAND, size))
            np.negative(M[band, band.start :], out=M[band, band.start :])
            corner = np.triu(M[band, band])
            M[band, band] = corner + np.triu(corner, 1).T
            M[band.stop :, band] = M[band, band.stop :].T
            yield COPIED * BAND * size
        return M

    def state(self) -> State:
        """Values for a checkpoint."""
        D = self._size
        return {"M": self._M[:D, :D], "next": self._next, "ridge": self.ridge}

    @classmethod
    def read(cls, saved: StateReader, memory: Memory) -> "Inversion":
        """The inversion that `state` has described."""
        D = memory.dimension
        inversion = cls(memory, saved.positive("ridge"))
        inversion._M[:D, :D] = saved.array("M", (D, D))
        inversion._next = saved.count("next", at_most=D)
        return inversion


def inverting(memory: Memory, ridge: float) -> Work[Inversion]:
    """The inverse of A + ridge I as work in units, while A stays as it is.

    Where rounding makes the sum indefinite, the ridge grows tenfold until it is not.
    """
    while True:
        inversion = Inversion(memory, ridge)
        try:
            while not inversion.done:
                inversion.step()
                yield inversion.cost
            return inversion
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15 * float(memory.diagonal().max()))
