"""The two memories of the paper, A = sum phi phi^T and B = sum phi y^T, in two layouts.

A is symmetric. Up to a few thousand features it is a full square, which is fastest to read row by
row. Beyond that only the lower triangle is kept, as blocks of grid pairs: half the
memory, and a batch enters one block after the other while it is in cache.
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from losse._kernels.accumulate import add_packed, add_square
from losse._kernels.packed import packed_block, packed_rows_times, packed_times, packed_to_square
from losse._kernels.simd import aligned, padded
from losse.encoders import Encoder, Features, SparseFeatures
from losse.encoders.features import Array
from losse.encoders.grid import GridEncoder

SQUARE_LIMIT = 8192
"""Features up to which A is a full square: half a gigabyte of doubles."""
WAITING = 500
"""Rows that enter a packed A together."""


class Memory(ABC):
    """Sums over all samples so far, each with its weight w.

    Attributes
    ----------
    A
        Sum of w phi phi^T, in the layout of the subclass.
    B
        Sum of w phi y^T, (D, S) with rows padded to whole cache lines.
    total
        Sum of w: the number of samples, if none has a weight.
    squares
        Sum of w y^2 per output.
    """

    A: npt.NDArray[np.floating]

    def __init__(self, dimension: int, n_outputs: int) -> None:
        self.dimension = dimension
        self.B = aligned((dimension, padded(n_outputs)))
        self.total = 0.0
        self.squares = np.zeros(padded(n_outputs))

    def add(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch in. ``Y`` has padded rows, like B."""
        self.add_products(features, weights)
        features.add_transposed(Y, weights, self.B)
        self.total += float(weights.sum())
        self.squares += weights @ (Y * Y)

    def objective(self, W: Array, residual: Array, ridge: float) -> float:
        """sum w ||y - W^T phi||^2 + ridge ||W||^2, given residual = B - (A + ridge I) W.

        Never below its second part, whatever rounding does to the first.
        """
        value = self.squares.sum() - (W * (self.B + residual)).sum()
        return float(max(value, ridge * (W * W).sum()))

    def scale(self, factor: float) -> None:
        """Multiply the weight of every sample by ``factor``."""
        for part in (self.A, self.B, self.squares):
            part *= factor
        self.total *= factor

    @abstractmethod
    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T."""

    @abstractmethod
    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""

    @abstractmethod
    def square(self) -> Array:
        """A as a new full square of doubles."""

    @abstractmethod
    def diagonal_blocks(self) -> Array:
        """The blocks on A's diagonal, (number, size, size): one per grid, or slices of 128."""


class SquareMemory(Memory):
    """A as a full square."""

    def __init__(self, dimension: int, n_outputs: int, dtype: npt.DTypeLike) -> None:
        super().__init__(dimension, n_outputs)
        self.A = np.zeros((dimension, dimension), dtype)

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T."""
        if isinstance(features, SparseFeatures):
            add_square(self.A, features.indices, features.values, weights)
        else:
            self.A += (features.values * weights[:, None]).T @ features.values

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""
        return np.asarray(self.A @ W.astype(self.A.dtype, copy=False), dtype=np.float64)

    def square(self) -> Array:
        """A as a new full square of doubles."""
        return np.array(self.A, dtype=np.float64)

    def diagonal_blocks(self) -> Array:
        """Slices of 128 along the diagonal; the last one is filled up with the identity."""
        size = min(128, self.dimension)
        count = -(-self.dimension // size)
        blocks = np.tile(np.eye(size), (count, 1, 1))
        for k in range(count):
            part = self.A[k * size : (k + 1) * size, k * size : (k + 1) * size]
            blocks[k, : len(part), : len(part)] = part
        return blocks


class PackedMemory(Memory):
    """A as the lower triangle of blocks, one per pair of grids.

    A is several gigabytes, and every batch touches most of it. So rows wait until they are
    `WAITING`, and enter it together; products with A account for them in the meantime.
    """

    def __init__(self, n_grids: int, size: int, n_outputs: int, dtype: npt.DTypeLike) -> None:
        super().__init__(n_grids * size, n_outputs)
        self.size = size
        self.A = np.zeros((n_grids * (n_grids + 1) // 2, size, size), dtype)
        self._waiting: list[SparseFeatures] = []

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T, now or soon."""
        assert isinstance(features, SparseFeatures)
        self._waiting.append(features.scaled(np.sqrt(weights)))
        if sum(map(len, self._waiting)) >= WAITING:
            self.settle()

    def settle(self) -> None:
        """Let all rows that wait enter A."""
        if not self._waiting:
            return
        indices = np.concatenate([features.indices for features in self._waiting])
        values = np.concatenate([features.values for features in self._waiting])
        self._waiting.clear()
        add_packed(self.A, self.size, indices, values, np.ones(len(indices)))

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows; computed in A's precision."""
        dtype = self.A.dtype
        V = aligned((len(W), padded(W.shape[1], dtype)), dtype)
        V[:, : W.shape[1]] = W
        out = aligned(V.shape, dtype)
        packed_times(self.A, self.size, V, out)
        result = np.array(out[:, : W.shape[1]], dtype=np.float64)
        for features in self._waiting:
            image = aligned((len(features), W.shape[1]))
            features.times(W, image)
            features.add_transposed(image, np.ones(len(features)), result)
        return result

    def scale(self, factor: float) -> None:
        """Multiply the weight of every sample by ``factor``."""
        self.settle()
        super().scale(factor)

    def square(self) -> Array:
        """A as a new full square of doubles."""
        self.settle()
        out = np.empty((self.dimension, self.dimension))
        packed_to_square(self.A, self.size, out)
        return out

    def diagonal_blocks(self) -> Array:
        """One block per grid."""
        self.settle()
        g = np.arange(self.dimension // self.size)
        return np.asarray(self.A[g * (g + 1) // 2 + g], dtype=np.float64)

    def rows_times(self, cells: npt.NDArray[np.int32], W: Array) -> Array:
        """Some rows of A, times W."""
        self.settle()
        out = aligned((len(cells), W.shape[1]))
        packed_rows_times(self.A, self.size, cells, W, out)
        return out

    def block(self, cells: npt.NDArray[np.int32]) -> Array:
        """A_ss for some cells s, in ascending order."""
        self.settle()
        out = np.empty((len(cells), len(cells)))
        packed_block(self.A, self.size, cells, out)
        return out


def is_packed(encoder: Encoder) -> bool:
    """Whether A is kept packed for this encoder's features."""
    return isinstance(encoder, GridEncoder) and encoder.dimension > SQUARE_LIMIT


def memory_bytes(encoder: Encoder, dtype: npt.DTypeLike) -> float:
    """Size of A before it is allocated."""
    itemsize = np.dtype(dtype).itemsize
    if is_packed(encoder):
        assert isinstance(encoder, GridEncoder)
        n, size = encoder.n_grids, encoder.cells_per_grid
        return n * (n + 1) / 2 * size**2 * itemsize
    return float(encoder.dimension) ** 2 * itemsize


def new_memory(encoder: Encoder, n_outputs: int, dtype: npt.DTypeLike) -> Memory:
    """Empty memories for an encoder's features, in the layout that suits their number."""
    if is_packed(encoder):
        assert isinstance(encoder, GridEncoder)
        return PackedMemory(encoder.n_grids, encoder.cells_per_grid, n_outputs, dtype)
    return SquareMemory(encoder.dimension, n_outputs, dtype)
