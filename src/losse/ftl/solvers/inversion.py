r"""The inverse of A + lambda I by the sweep operator, a block of columns at a time.

Sweeping the block K of a symmetric matrix M subtracts :math:`M_K^T M_{KK}^{-1} M_K` from all the
rest and puts :math:`M_{KK}^{-1} M_K` and :math:`-M_{KK}^{-1}` in its place. When every block is
swept, :math:`-M^{-1}` is left. This is as many operations, and as exact, as a Cholesky factor and
its inverse, but it is the same small piece of work over and over: it can pause anywhere.
"""

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dtrtri

from losse._kernels.inverse import mirror
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, blocks

BLOCK = 64
"""Columns swept at once."""
COPIED = 400.0
"""Operations of a matrix product in the time that a number takes to be copied twice."""


class Inversion:
    """(A + ridge I)^-1 in the making; ``A`` is a full square that is overwritten.

    Where rounding makes the sum indefinite, `step` raises `numpy.linalg.LinAlgError`.

    Examples
    --------
    >>> from losse.work import finished
    >>> A = np.cov(np.random.default_rng(0).normal(size=(200, 300)))
    >>> inversion = Inversion(A.copy(), 0.1)
    >>> while not inversion.done:
    ...     inversion.step()
    >>> out = np.empty((200, 200))
    >>> finished(inversion.putting(out))
    >>> bool(np.allclose(out @ (A + 0.1 * np.eye(200)), np.eye(200)))
    True
    """

    def __init__(self, A: Array, ridge: float) -> None:
        self.ridge = ridge
        self._M = A
        self._next = 0
        np.einsum("ii->i", A)[:] += ridge

    @property
    def done(self) -> bool:
        """Whether every block is swept."""
        return self._next >= len(self._M)

    @property
    def cost(self) -> float:
        """Operations of a step."""
        return float(BLOCK * len(self._M) ** 2)

    def step(self) -> None:
        """Sweep another block. Only the upper triangle is kept."""
        M, first = self._M, self._next
        block = slice(first, min(first + BLOCK, len(M)))
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

    def putting(self, out: Array) -> Work[None]:
        """Write the inverse when it is done, as work in units; ``out`` may be larger."""
        M, D = self._M, len(self._M)
        for band in blocks(D, COPIED * D):
            np.negative(M[band, band.start :], out=out[band, band.start : D])
            mirror(out[band, band])
            out[band.stop : D, band] = out[band, band.stop : D].T
            yield (band.stop - band.start) * COPIED * D

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"M": self._M, "next": self._next, "ridge": self.ridge}

    @classmethod
    def read(cls, saved: StateReader, dimension: int) -> "Inversion":
        """The inversion that `state` has described."""
        inversion = cls(saved.array("M", (dimension, dimension)), 0.0)
        inversion.ridge = saved.positive("ridge")
        inversion._next = saved.count("next", at_most=dimension)
        return inversion


def inverting(memory: Memory, ridge: float) -> Work[Inversion]:
    """The inverse of A + ridge I as work in units, while A stays as it is.

    Where rounding makes the sum indefinite, the ridge grows tenfold until it is not.
    """
    while True:
        inversion = Inversion(memory.square(), ridge)
        try:
            while not inversion.done:
                inversion.step()
                yield inversion.cost
            return inversion
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15 * float(memory.diagonal().max()))
