"""`SquareMemory`: A as a full square, for models of moderate size."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse._kernels.listed import SPARSE, add_product_of_rows
from losse._kernels.simd import aligned
from losse.encoders.features import Features, SparseFeatures
from losse.ftl.deferred import MANY, Deferred
from losse.ftl.memories.base import SCATTERED, Memory
from losse.ftl.memories.listed_rows import ListedRows
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import Work, blocks

if TYPE_CHECKING:
    from losse.ftl.targets import Change

LEAST_ROWS, MOST_ROWS, BAND = 64, 256, 64
"""Rows that enter A together as a matrix product, and rows of A that they enter, at least."""
MOST_LISTED, LISTED = 512, 8.0
"""Rows whose active cells enter A together, and operations of a matrix product in the time that one
takes for a pair of them."""

_ROWS = 256
"""Rows of A that are changed to double precision at once."""
_LEAST = 1 << 15
"""Entries of A that a row changes, from which on rows had better wait for others."""

# Operations that take as long as the first write of a number.
_FIRST_WRITE = 200.0
# Operations that take as long as the copy of a number across the diagonal.
_COPIED = 200.0


class SquareMemory(Memory):
    """A as a full square, which is fastest to read row by row.

    Rows that may enter it `soon` wait for others in `Deferred`, of which the square is a part.
    """

    def __init__(self, dimension: int, n_outputs: int, dtype: npt.DTypeLike) -> None:
        super().__init__(dimension, n_outputs)
        self.A = aligned((dimension, dimension), dtype)
        self._deferred: Deferred | None = None

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T.

        Roots of the weights go into the features: A stays symmetric to the last bit.
        """
        if (abs(weights) != 1.0).any():
            features, weights = features.scaled(np.sqrt(abs(weights))), np.sign(weights)
        features.add_products(weights, self.A)

    def defers(self, features: Features) -> bool:
        """Whether such rows wait for others before they enter A."""
        return len(features) <= MANY and features.values.shape[1] ** 2 >= _LEAST

    def add_products_soon(self, features: Features, weights: Array, hold: bool) -> None:
        """A += sum of w phi phi^T, now or later."""
        n = len(features)
        if not self.defers(features):
            self.add_products(features, weights)
            return
        if self._deferred is None:
            self._deferred = _deferred(self.A, features)
        self._deferred.make_room(n, hold)
        self._deferred.take(features.scaled(np.sqrt(weights)))

    @property
    def waiting(self) -> int:
        """Rows that have still to enter A."""
        return len(self._waiting)

    @property
    def _waiting(self) -> npt.NDArray[Any]:
        """Rows that have still to enter A, (n, D), with zeros where they have."""
        if self._deferred is None:
            return np.zeros((0, self.dimension), self.A.dtype)
        return self._deferred.waiting

    def _settle(self) -> None:
        """Let all rows enter A."""
        if self._deferred is not None:
            self._deferred.enter()

    def _adding_products(self, features: Features, weights: Array, scattered: bool) -> Work[None]:
        n, D, active = len(features), self.dimension, features.values.shape[1]
        bands = features.bands() if n >= LEAST_ROWS and _is_listed(features) else None
        if bands is None and (scattered or n < LEAST_ROWS or SCATTERED * active**2 < D**2):
            yield from super()._adding_products(features, weights, scattered)
            return
        if self.total == 0.0:  # the system hands out memory when it is first written to
            for band in blocks(D, _FIRST_WRITE * D):
                self.A[band] = 0.0
                yield (band.stop - band.start) * _FIRST_WRITE * D
        scaled = features.scaled(np.sqrt(weights))
        if bands is None:
            yield from self._adding_rows(scaled)
        else:
            yield from self._adding_bands(scaled, bands)
        for band in blocks(D, _COPIED * D, BAND):
            self.A[band.stop :, band] = self.A[band, band.stop :].T
            corner = np.triu(self.A[band, band])
            self.A[band, band] = corner + np.triu(corner, 1).T
            yield _COPIED * (band.stop - band.start) * (D - band.start)

    def _adding_rows(self, features: Features) -> Work[None]:
        """Add products to the upper triangle of A as those of matrices."""
        n, D = len(features), self.dimension
        cost = 2.8 if features.values.shape[1] > SPARSE * D else 1.2
        room = np.empty((min(n, MOST_ROWS), D), self.A.dtype)
        for part in (slice(k, min(k + MOST_ROWS, n)) for k in range(0, n, MOST_ROWS)):
            rows = room[: part.stop - part.start]
            features[part].write(rows)
            yield _FIRST_WRITE * rows.size
            for band in blocks(D, cost * len(rows) * D, BAND):
                right = slice(band.start, D)
                add_product_of_rows(rows[:, band], rows[:, right], self.A[band, right])
                yield cost * len(rows) * (band.stop - band.start) * (D - band.start)

    def _adding_bands(self, features: Features, bands: npt.NDArray[np.int64]) -> Work[None]:
        """Add products to the upper triangle of A, of active cells alone."""
        n, count = len(features), len(bands) - 1
        for part in (slice(k, min(k + MOST_LISTED, n)) for k in range(0, n, MOST_LISTED)):
            rows = features[part]
            for k in range(count):
                rows.add_bands(k, k + 1, self.A)
                yield LISTED * len(rows) * rows.values.shape[1] ** 2 * 2 * (count - k) / count**2

    def diagonal(self) -> Array:
        """The diagonal of A."""
        T = self._waiting
        return np.asarray(self.A.diagonal() + np.einsum("ij,ij->j", T, T), dtype=np.float64)

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""
        W, T = W.astype(self.A.dtype, copy=False), self._waiting
        # A is symmetric, and read more quickly in this order when it comes from memory.
        return np.asarray((W.T @ self.A).T + T.T @ (T @ W), dtype=np.float64)

    def residuals(self, W: Array, penalty: float) -> Work[Array]:
        """B - (A + penalty I) W, in double precision, as work in units."""
        out, D = self.B - penalty * W, self.dimension
        for start in range(0, D, _ROWS):  # a copy of all of A would be large
            rows = slice(start, start + _ROWS)
            out[rows] -= self.A[rows].astype(np.float64, copy=False) @ W
            yield 3.0 * _ROWS * W.size
        T = self._waiting.astype(np.float64, copy=False)
        return out - T.T @ (T @ W)

    def rows_times(self, cells: npt.NDArray[np.int32], W: Array) -> Array:
        """Some rows of A, times W with padded rows."""
        self._settle()
        return np.asarray(self.A[cells] @ W, dtype=np.float64)

    def block(self, cells: npt.NDArray[np.int32]) -> Array:
        """A_ss for some cells s."""
        self._settle()
        return np.array(self.A[np.ix_(cells, cells)], dtype=np.float64)

    def square(self) -> Array:
        """A as a new full square of doubles."""
        self._settle()
        return np.array(self.A, dtype=np.float64)

    def put_rows(self, rows: slice, waiting: int, out: Array) -> None:
        """Write some rows of A, from the diagonal on, with the first rows that wait."""
        T, right = self._waiting[:waiting], slice(rows.start, self.dimension)
        out[rows, right] = self.A[rows, right]
        add_product_of_rows(T[:, rows], T[:, right], out[rows, right])

    def scale(self, factor: float) -> None:
        """Multiply the weight of every sample by ``factor``."""
        self._settle()
        super().scale(factor)

    def absorb(self, other: Memory, factor: float, change: "Change | None") -> None:
        """Add the sums of another memory of the same layout, times ``factor``."""
        assert isinstance(other, SquareMemory)
        super().absorb(other, factor, change)
        if other.waiting:
            T = other._waiting
            self.A += (factor * (T.T @ T)).astype(self.A.dtype, copy=False)

    def clear(self) -> None:
        """Forget everything."""
        self._deferred = None
        super().clear()

    def state(self) -> State:
        """Values for a checkpoint, with the rows that wait."""
        own = super().state() | {"defers": self._deferred is not None}
        if self._deferred is None:
            return own
        return own | nested("deferred", self._deferred.state(self.dimension))

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        self._deferred = None
        if saved.has("defers") and saved.flag("defers"):
            part = saved.part("deferred")
            if part.has_array("pending"):
                self._deferred = Deferred(self.A)
            else:
                active = part.count("active", at_most=self.dimension)
                kind = SparseFeatures.none(active, self.dimension)
                self._deferred = ListedRows(self.A, kind)
            self._deferred.restore(part, self.dimension)

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""
        size = min(128, self.dimension)
        return -(-self.dimension // size), size, size

    def diagonal_blocks(self) -> Array:
        """Slices of 128 along the diagonal; the last one is filled up with the identity."""
        self._settle()
        count, size, _ = self.block_shape
        blocks = np.tile(np.eye(size), (count, 1, 1))
        for k in range(count):
            part = self.A[k * size : (k + 1) * size, k * size : (k + 1) * size]
            blocks[k, : len(part), : len(part)] = part
        return blocks


def _deferred(A: npt.NDArray[Any], kind: Features) -> Deferred:
    """Room for such features to wait before they enter A."""
    if isinstance(kind, SparseFeatures) and _is_listed(kind):
        return ListedRows(A, kind)
    return Deferred(A)


def _is_listed(features: Features) -> bool:
    """Whether products of active cells alone are quicker than those of whole rows."""
    return LISTED * features.values.shape[1] ** 2 < features.dimension**2
