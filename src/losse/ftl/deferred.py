"""`Deferred`: a large symmetric matrix, and rows whose products enter it later, little by little.

A row changes all of the matrix, which is more than a row's time allows. So M + s T^T T is kept as
it is written, with M the matrix, s a sign and T rows that wait. When they are many, they enter M
together, a few columns of it for each row that comes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk, ssyrk

from losse._kernels.block_update import rows_times
from losse._kernels.inverse import mirror
from losse._kernels.listed import add_product_of_rows
from losse._kernels.simd import aligned
from losse.encoders.features import Features
from losse.storage.state import State, StateReader

MANY = 128
"""Rows that enter a matrix together, if it does not say so itself."""


class Deferred:
    """M + s T^T T.

    Attributes
    ----------
    matrix
        M, a symmetric array.
    sign
        s, 1 or -1. To be changed only while no row waits.
    many
        Rows that enter the matrix together. As many others may come meanwhile.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sums, rows = Deferred(np.zeros((5, 5))), rng.normal(size=(1000, 5))
    >>> for row in rows:
    ...     _ = sums.make_room(1)
    ...     sums.append(row[None])
    >>> T = sums.waiting
    >>> len(T) < 2 * MANY, bool(np.allclose(sums.matrix + T.T @ T, rows.T @ rows))
    (True, True)
    """

    def __init__(self, matrix: npt.NDArray[Any], sign: float = 1.0, many: int = MANY) -> None:
        self.matrix = matrix
        self.sign = sign
        self.many = many
        # The system provides pages only as they are written.
        self._rows = aligned((2 * many, len(matrix)), matrix.dtype)
        self._count = 0
        self._entering = 0  # rows that enter M, a few columns at a time
        self._entered = 0  # columns that they have entered with, and that are zero since

    @property
    def waiting(self) -> npt.NDArray[Any]:
        """T: rows that wait, with zeros where they have entered M."""
        return self._rows[: self._count]

    def make_room(self, rows: int, hold: bool = False) -> bool:
        """Do the share of some rows that come, unless it is held; or enter all for want of room.

        Returns whether all has entered.
        """
        if not hold:
            self._enter_some(rows)
        full = self._count + rows > len(self._rows)
        if full:
            self.enter()
        return full

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Let more rows wait."""
        self.extend(len(rows))[:] = rows

    def take(self, features: Features) -> None:
        """Let rows of features wait."""
        features.write(self.extend(len(features)))

    def extend(self, rows: int) -> npt.NDArray[Any]:
        """Let more rows wait, which the caller writes."""
        self._count += rows
        return self._rows[self._count - rows : self._count]

    def _enter_some(self, rows: int) -> None:
        """M + s T^T T stays the same: where columns have entered M, those of T become zero."""
        if self._entering == 0 and self._count >= self.many:
            self._begin()
        if self._entering == 0:
            return
        first, D = self._entered, len(self.matrix)
        # Nearly as many rows come meanwhile: all of them have about the same share.
        last = self._enter_band(first, min(first - (-8 * rows * D // (7 * self.many)), D))
        self._rows[: self._entering, first:last] = 0.0
        self._entered = last
        if last == D:
            left = self._count - self._entering
            self._rows[:left] = self._rows[self._entering : self._count]
            self._count, self._entering, self._entered = left, 0, 0

    def _begin(self) -> None:
        """Let all rows that wait begin to enter M."""
        self._entering = self._count

    def _enter_band(self, first: int, last: int) -> int:
        """Enter M with some columns, or a few more; the first that it has not entered with then."""
        M, T = self.matrix, self._rows[: self._entering]
        add_product_of_rows(T[:, first:last], T[:, first:], M[first:last, first:], self.sign)
        M[last:, first:last] = M[first:last, last:].T
        return last

    def rows_times(self, rows: slice, X: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        """Write some rows of the product with X, of doubles with padded rows."""
        D, T = len(X), self.waiting
        rows_times(self.matrix[rows, :D], np.arange(len(out)), len(out), X, out)
        out += T[:, rows].T @ (self.sign * (T[:, :D] @ X))

    def enter(self) -> None:
        """Let all rows enter M now."""
        if self._count:
            syrk = dsyrk if self.matrix.dtype == np.float64 else ssyrk
            # BLAS sees the transpose, and works on what is our upper triangle.
            M, T = self.matrix.T, self.waiting.T
            syrk(self.sign, T, beta=1.0, c=M, lower=True, overwrite_c=True)
            mirror(self.matrix)
        self.clear()

    def clear(self) -> None:
        """Forget the rows that wait."""
        self._count = self._entering = self._entered = 0

    def state(self, width: int) -> State:
        """Values for a checkpoint, but for M and the sign; of the columns, so many count."""
        return {
            "pending": self._rows[: self._count, :width],
            "count": self._count,
            "entering": self._entering,
            "entered": self._entered,
        }

    def restore(self, saved: StateReader, width: int) -> None:
        """Take over what `state` has returned."""
        self._restore_counts(saved)
        saved.columns("pending", out=self._rows[: self._count], width=width)

    def _restore_counts(self, saved: StateReader) -> None:
        self._count = saved.count("count", at_most=len(self._rows))
        self._entering = self._entered = 0
        if saved.has("entering"):
            self._entering = saved.count("entering", at_most=self._count)
            self._entered = saved.count("entered", at_most=len(self.matrix))
