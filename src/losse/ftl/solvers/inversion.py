r"""The inverse of A + lambda I by the sweep operator, a block of columns at a time.

Sweeping the block K of a symmetric matrix M subtracts :math:`M_K^T M_{KK}^{-1} M_K` from all the
rest and puts :math:`M_{KK}^{-1} M_K` and :math:`-M_{KK}^{-1}` in its place. When every block is
swept, :math:`-M^{-1}` is left. M stays symmetric, so its upper triangle is enough. This is as many
operations, and as exact, as a Cholesky factor and its inverse, but it is the same small piece of
work over and over: it can pause anywhere.
"""

import numpy as np
from scipy.linalg.lapack import dtrtri

from losse._kernels.blas import add_product, solve_lower
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.work import UNIT, Work

BLOCK, BAND = 64, 128
"""Columns swept at once, and rows changed at once."""
# Operations of a matrix product in the time for the first write of a number, and for a copy.
_FIRST_WRITE, _COPIED = 150.0, 100.0


class Inversion:
    """(A + ridge I)^-1 of a memory's A in the making, as it is when the inversion becomes `ready`.

    Where rounding makes the sum indefinite, `step` raises `numpy.linalg.LinAlgError`.

    Examples
    --------
    >>> from losse.ftl.memories.square import SquareMemory
    >>> memory = SquareMemory(200, 1, "float64")
    >>> memory.A[:] = np.cov(np.random.default_rng(0).normal(size=(200, 300)))
    >>> inversion = Inversion(memory, 0.1)
    >>> while not inversion.done:
    ...     _ = inversion.step()
    >>> P = inversion.matrix
    >>> bool(np.allclose(P @ (memory.A + 0.1 * np.eye(200)), np.eye(200)))
    True
    """

    samples = 0

    def __init__(self, memory: Memory, ridge: float) -> None:
        self.ridge = ridge
        self.waiting = memory.waiting
        """Rows that are yet to enter A, and are in the inverse all the same."""
        self._memory = memory
        self._size = D = memory.dimension
        self._read = 0  # rows of A that are read
        self._next = 0  # column of the block that is swept
        self._row = 0  # of M, up to which it is
        self._mirrored = 0  # rows of M that are those of the inverse
        self._pivot = self._half = np.zeros((0, 0))  # L^-1 and L^-1 M_K of the block
        self.matrix = aligned((padded(D), padded(D)))
        """The inverse when it is done; its rows and columns are padded."""

    @property
    def ready(self) -> bool:
        """Whether A has been read: what changes there later is not in the inverse."""
        return self._read == self._size

    @property
    def done(self) -> bool:
        """Whether the matrix is the inverse."""
        return self._mirrored == self._size

    def step(self) -> float:
        """Do another piece of work; returns its operations."""
        if not self.ready:
            return self._prepare()
        return self._sweep() if self._next < self._size else self._mirror()

    def _prepare(self) -> float:
        """Read some rows of A. New memory is much slower to write for the first time than later."""
        D, M, first = self._size, self.matrix, self._read
        band = slice(first, min(first + BAND, D))
        self._memory.put_rows(band, self.waiting, M)
        np.einsum("ii->i", M)[band] += self.ridge
        self._read = band.stop
        return (band.stop - first) * (D - first) * (_FIRST_WRITE + 2.0 * self.waiting)

    def _sweep(self) -> float:
        """Sweep a band of rows by a block of columns."""
        if self._row == 0:
            self._open_block()
        D, M, first, half = self._size, self.matrix, self._row, self._half
        self._row = last = min(first + BAND, D)
        add_product(half[:, first:last], half[:, first:D], M[first:last, first:D], -1.0)
        if last == D:
            self._close_block()
        # Opening and closing a block is a tenth of all.
        return 2.2 * BLOCK * (last - first) * (D - first) + 5.0 * BLOCK * D

    def _open_block(self) -> None:
        D, M, block = self._size, self.matrix, self._block
        rows = np.empty((block.stop - block.start, D))
        rows[:, : block.start] = M[: block.start, block].T
        rows[:, block.start :] = M[block, block.start : D]
        corner = np.triu(rows[:, block])
        L = np.linalg.cholesky(corner + np.triu(corner, 1).T)
        self._pivot = np.tril(dtrtri(L, lower=1)[0])
        rows[:, block] = 0.0
        self._half = self._pivot @ rows

    def _close_block(self) -> None:
        D, M, block, pivot = self._size, self.matrix, self._block, self._pivot
        rows = pivot.T @ self._half
        M[: block.start, block] = rows[:, : block.start].T
        M[block, block.stop : D] = rows[:, block.stop :]
        M[block, block] = -(pivot.T @ pivot)
        self._next, self._row = block.stop, 0

    @property
    def _block(self) -> slice:
        """Columns that are swept."""
        return slice(self._next, min(self._next + BLOCK, self._size))

    def _mirror(self) -> float:
        """Make some rows of the inverse, which is symmetric to the last bit."""
        M, first = self.matrix, self._mirrored
        self._mirrored = last = min(first + BAND, self._size)
        np.negative(M[first:last, first:], out=M[first:last, first:])
        corner = np.triu(M[first:last, first:last])
        M[first:last, first:last] = corner + np.triu(corner, 1).T
        M[first:last, :first] = M[:first, first:last].T
        return BAND * (_FIRST_WRITE * first + _COPIED * (self._size - first))

    def state(self) -> State:
        """Values for a checkpoint."""
        own: State = {
            "read": self._read, "waiting": self.waiting, "next": self._next, "row": self._row,
            "mirrored": self._mirrored, "ridge": self.ridge,
        }  # fmt: skip
        if self._read:
            own["M"] = self.matrix[: self._size, : self._size]
        return own | ({"pivot": self._pivot, "half": self._half} if self._row else {})

    @classmethod
    def read(cls, saved: StateReader, memory: Memory) -> "Inversion":
        """The inversion that `state` has described."""
        D = memory.dimension
        inversion = cls(memory, saved.positive("ridge"))
        if saved.has_array("M"):
            inversion.matrix[:D, :D] = saved.array("M", (D, D))
            inversion._read = saved.count("read", at_most=D) if saved.has("read") else D
        if saved.has("waiting"):
            inversion.waiting = saved.count("waiting", at_most=memory.waiting)
        inversion._next = saved.count("next", at_most=D)
        inversion._row = saved.count("row", at_most=D) if saved.has("row") else 0
        inversion._mirrored = saved.count("mirrored", at_most=D) if saved.has("mirrored") else 0
        if inversion._row and inversion._next < D:
            n = inversion._block.stop - inversion._next
            inversion._pivot = saved.array("pivot", (n, n))
            inversion._half = saved.array("half", (n, D))
        return inversion


class SampleInversion:
    r"""The same inverse of few samples, :math:`(I - T^T T) / \lambda`, in less time.

    :math:`T = L^{-1} \Phi` with :math:`L L^T = \Phi \Phi^T + \lambda I` takes some rows after the
    other. Where lambda is small, subtraction costs digits.

    Parameters
    ----------
    features
        Samples, each times the root of its weight.
    ridge
        Lambda.

    Examples
    --------
    >>> from losse.encoders.features import DenseFeatures
    >>> Phi = np.random.default_rng(0).normal(size=(50, 200))
    >>> inversion = SampleInversion(DenseFeatures(Phi), 0.1)
    >>> while not inversion.done:
    ...     _ = inversion.step()
    >>> bool(np.allclose(inversion.matrix @ (Phi.T @ Phi + 0.1 * np.eye(200)), np.eye(200)))
    True
    """

    ready = True
    waiting = 0

    def __init__(self, features: Features, ridge: float) -> None:
        self.ridge = ridge
        self._features = features
        self._size = D = features.dimension
        self._T = aligned((len(features), D))
        self._made = 0  # rows of T
        self._row = 0  # rows of the inverse
        self.matrix = aligned((padded(D), padded(D)))
        """The inverse when it is done; its rows and columns are padded."""

    @property
    def samples(self) -> int:
        """How many samples it is of."""
        return len(self._T)

    @property
    def done(self) -> bool:
        """Whether the matrix is the inverse."""
        return self._row == self._size

    def step(self) -> float:
        """Do another piece of work; returns its operations."""
        return self._extend() if self._made < len(self._T) else self._put_rows()

    def _extend(self) -> float:
        D, first = self._size, self._made
        n = min(len(self._T) - first, max(16, int(UNIT / (4.0 * D * (first + 64.0)))))
        self._made = first + n
        T, Phi = self._T[:first], self._features[first : first + n].dense()
        across = Phi @ T.T
        inner = Phi @ Phi.T - across @ across.T
        np.einsum("ii->i", inner)[:] += self.ridge
        rows = self._T[first : self._made]
        rows[:] = Phi - across @ T
        solve_lower(np.linalg.cholesky(inner), rows)
        return 4.0 * n * D * (first + 64.0)

    def _put_rows(self) -> float:
        D, T, M, first = self._size, self._T, self.matrix, self._row
        cost = 2.0 * len(T) + _FIRST_WRITE
        self._row = last = min(D, first + max(32, int(UNIT / (cost * D))))
        add_product(T[:, first:last], T[:, first:], M[first:last, first:D], -1.0 / self.ridge)
        np.einsum("ii->i", M)[first:last] += 1.0 / self.ridge
        corner = np.triu(M[first:last, first:last])
        M[first:last, first:last] = corner + np.triu(corner, 1).T
        M[first:last, :first] = M[:first, first:last].T
        return cost * (last - first) * D

    def state(self) -> State:
        """Values for a checkpoint, but for the samples."""
        own: State = {"made": self._made, "row": self._row, "ridge": self.ridge}
        if self._made:
            own["T"] = self._T[: self._made]
        return own | ({"M": self.matrix[: self._size, : self._size]} if self._row else {})

    @classmethod
    def read(cls, saved: StateReader, features: Features) -> "SampleInversion":
        """The inversion of some samples that `state` has described."""
        inversion = cls(features, saved.positive("ridge"))
        D = inversion._size
        inversion._made = saved.count("made", at_most=len(features))
        inversion._row = saved.count("row", at_most=D)
        if inversion._made:
            inversion._T[: inversion._made] = saved.array("T", (inversion._made, D))
        if inversion._row:
            inversion.matrix[:D, :D] = saved.array("M", (D, D))
        return inversion


def inverting(
    memory: Memory, ridge: float, samples: Features | None = None
) -> Work[Inversion | SampleInversion]:
    """The inverse of A + ridge I as work in units, while A stays as it is.

    ``samples`` may be all that A is made of. Where rounding makes the sum indefinite, the ridge
    grows tenfold until it is not.
    """
    if samples is not None:
        of_samples = SampleInversion(samples, ridge)
        while not of_samples.done:
            yield of_samples.step()
        return of_samples
    while True:
        inversion = Inversion(memory, ridge)
        try:
            while not inversion.done:
                yield inversion.step()
            return inversion
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15 * float(memory.diagonal().max()))
