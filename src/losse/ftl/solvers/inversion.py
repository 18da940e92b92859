r"""The inverse of A + lambda I by the sweep operator, a block of columns at a time.

Sweeping the block K of a symmetric matrix M subtracts :math:`M_K^T M_{KK}^{-1} M_K` from all the
rest and puts :math:`M_{KK}^{-1} M_K` and :math:`-M_{KK}^{-1}` in its place. When every block is
swept, :math:`-M^{-1}` is left. This is as many operations, and as exact, as a Cholesky factor and
its inverse, but it is the same small piece of work over and over: it can pause anywhere.
"""

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dtrtri

from losse._kernels.simd import aligned, padded
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work

BLOCK = 64
"""Columns swept at once."""
BAND, COPIED = 256, 50.0
"""Rows changed at once, and operations of a matrix product in the time for a number's copy."""


class Inversion:
    """(A + ridge I)^-1 of a memory's A in the making, as it is when the inversion becomes `ready`.

    Where rounding makes the sum indefinite, `step` raises `numpy.linalg.LinAlgError`.

    Examples
    --------
    >>> from losse.ftl.memories.square import SquareMemory
    >>> from losse.work import finished
    >>> memory = SquareMemory(200, 1, "float64")
    >>> memory.A[:] = np.cov(np.random.default_rng(0).normal(size=(200, 300)))
    >>> inversion = Inversion(memory, 0.1)
    >>> while not inversion.done:
    ...     _ = inversion.step()
    >>> P = finished(inversion.result())
    >>> bool(np.allclose(P @ (memory.A + 0.1 * np.eye(200)), np.eye(200)))
    True
    """

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.ridge = ridge
        self._memory = memory
        self._size = D = memory.dimension
        self._rows = 0  # of M, for which the system has provided room
        self._next = 0  # column of the block that is swept
        self._row = 0  # of M, up to which it is
        self._pivot = self._half = np.zeros((0, 0))  # L^-1 and L^-1 M_K of the block
        # What becomes of it has rows of whole lines.
        self._M = aligned((padded(D), padded(D)))

    @property
    def ready(self) -> bool:
        """Whether A has been read: what changes there later is not in the inverse."""
        return self._rows == len(self._M)

    @property
    def done(self) -> bool:
        """Whether every block is swept."""
        return self._next >= self._size

    def step(self) -> float:
        """Do another piece of work; returns its operations."""
        return self._sweep() if self.ready else self._prepare()

    def _prepare(self) -> float:
        """Make room for some rows of A; read A itself with the last.

        New memory is much slower to write for the first time than later.
        """
        D, M = self._size, self._M
        last = min(self._rows + BAND // 4, len(M))
        M[self._rows : last] = 0.0
        self._rows = last
        if self.ready:
            self._memory.put_square(M[:D, :D])
            np.einsum("ii->i", M)[:D] += self.ridge
        return COPIED * BAND * len(M)

    def _sweep(self) -> float:
        """Sweep a band of rows by a block of columns."""
        if self._row == 0:
            self._open_block()
        last = min(self._row + BAND, len(self._M))
        # BLAS sees the transpose of the band, and changes it in place.
        band, half = self._M[self._row : last].T, self._half
        part = half[:, self._row : last]
        dgemm(-1.0, half.T, part, beta=1.0, c=band, overwrite_c=True)
        self._row = last
        if last == len(self._M):
            self._close_block()
        return 1.6 * BLOCK * BAND * len(self._M)

    def _open_block(self) -> None:
        block, rows = self._block, self._M[self._block].copy()
        L = np.linalg.cholesky(rows[:, block])
        self._pivot = np.tril(dtrtri(L, lower=1)[0])
        rows[:, block] = 0.0
        self._half = self._pivot @ rows

    def _close_block(self) -> None:
        M, block, pivot = self._M, self._block, self._pivot
        M[block] = pivot.T @ self._half
        M[:, block] = M[block].T
        M[block, block] = -(pivot.T @ pivot)
        self._next, self._row = block.stop, 0

    @property
    def _block(self) -> slice:
        """Columns that are swept."""
        return slice(self._next, min(self._next + BLOCK, self._size))

    def result(self) -> Work[Array]:
        """The inverse when it is done, as work in units; its rows and columns are padded."""
        M, size = self._M, len(self._M)
        for first in range(0, size, BAND):
            band = slice(first, min(first + BAND, size))
            np.negative(M[band, first:], out=M[band, first:])
            # Symmetric to the last bit, which rounding has not left it.
            corner = np.triu(M[band, band])
            M[band, band] = corner + np.triu(corner, 1).T
            M[band.stop :, band] = M[band, band.stop :].T
            yield COPIED * BAND * size
        return M

    def state(self) -> State:
        """Values for a checkpoint."""
        D = self._size
        own: State = {"rows": self._rows, "next": self._next, "row": self._row, "ridge": self.ridge}
        if self.ready:
            own["M"] = self._M[:D, :D]
        return own | ({"pivot": self._pivot, "half": self._half[:, :D]} if self._row else {})

    @classmethod
    def read(cls, saved: StateReader, memory: Memory) -> "Inversion":
        """The inversion that `state` has described."""
        D = memory.dimension
        inversion = cls(memory, saved.positive("ridge"))
        rows = len(inversion._M)
        inversion._rows = saved.count("rows", at_most=rows) if saved.has("rows") else rows
        if inversion.ready:
            inversion._M[:D, :D] = saved.array("M", (D, D))
        inversion._next = saved.count("next", at_most=D)
        inversion._row = saved.count("row", at_most=D) if saved.has("row") else 0
        if inversion._row and not inversion.done:
            n = inversion._block.stop - inversion._next
            inversion._pivot = saved.array("pivot", (n, n))
            inversion._half = np.zeros((n, len(inversion._M)))
            saved.columns("half", out=inversion._half, width=D)
        return inversion


def inverting(memory: Memory, ridge: float) -> Work[Inversion]:
    """The inverse of A + ridge I as work in units, while A stays as it is.

    Where rounding makes the sum indefinite, the ridge grows tenfold until it is not.
    """
    while True:
        inversion = Inversion(memory, ridge)
        try:
            while not inversion.done:
                yield inversion.step()
            return inversion
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15 * float(memory.diagonal().max()))
