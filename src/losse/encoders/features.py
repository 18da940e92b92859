"""Features of a batch of rows: what an encoder hands to the regression.

Sparse features list the active entries of each row, the same number in every row; dense ones are a
plain matrix, in which every entry counts as active. Both have the same verbs. Matrices that they
multiply have rows padded to whole cache lines.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from losse._kernels.accumulate import CELLS, add_square, add_targets, blocks_ascend
from losse._kernels.inverse import dot_rows, quadratic_rows
from losse._kernels.listed import combine_rows
from losse._kernels.predict import weighted_rows
from losse._kernels.simd import aligned, padded
from losse.storage.state import State, StateReader
from losse.typing import Array

# Rows that `gram` spreads out at once: few enough to stay in cache at 36,300 features.
_GRAM_COLUMNS = 32
MOST_ACTIVE = 0.5
"""Share of active features from which on a full product with a square is quicker than a sparse one,
by measurement: 0.12 nanoseconds for each active entry, and 0.03 to 0.045 for each of all."""


class Features(ABC):
    """Rows Phi of ``dimension`` features; ``values`` are their active entries."""

    values: Array
    dimension: int

    def __len__(self) -> int:
        return len(self.values)

    @abstractmethod
    def __getitem__(self, rows: slice) -> Self: ...

    @abstractmethod
    def matrix(self) -> Any:
        """The features as a SciPy or NumPy matrix."""

    @abstractmethod
    def dense(self) -> Array:
        """The features as a full array."""

    @abstractmethod
    def write(self, out: npt.NDArray[np.floating]) -> None:
        """Write the features into a full array."""

    @abstractmethod
    def times(self, W: Array, out: Array) -> None:
        """out = Phi W."""

    @abstractmethod
    def add_transposed(self, Y: Array, weights: Array, out: Array) -> None:
        """out += Phi^T Y, each row with its weight."""

    @abstractmethod
    def add_products(self, weights: Array, out: npt.NDArray[np.floating]) -> None:
        """out += sum of w phi phi^T, a full square."""

    def bands(self) -> npt.NDArray[np.int64] | None:
        """Where bands of cells begin which are those of some active ones in every row.

        After them the dimension. None if there are no such bands.
        """
        return None

    def add_bands(self, first: int, last: int, out: npt.NDArray[np.floating]) -> None:
        """out += sum of phi phi^T, of some bands with themselves and all that come later."""
        raise NotImplementedError

    @abstractmethod
    def gram(self, other: Self) -> Array:
        """Phi Phi'^T: inner products of these rows with those of ``other``."""

    @abstractmethod
    def inner(self, T: Array) -> Array:
        """Phi T^T for a few dense rows T, which may be padded."""

    @abstractmethod
    def combine(self, P: Array, out: Array) -> None:
        """out = Phi P for a square P with padded rows and columns."""

    @abstractmethod
    def quadratic(self, P: Array) -> Array:
        """phi^T P phi of each row, for a symmetric P, which may be padded."""

    @abstractmethod
    def with_values(self, values: Array) -> Self:
        """The same entries with other values."""

    def scaled(self, factors: Array) -> Self:
        """Each row times its factor."""
        return self.with_values(self.values * factors[:, None])

    def squared(self) -> Self:
        """Each entry squared."""
        return self.with_values(self.values**2)

    def size(self, weights: Array) -> float:
        """Sum of w ||phi||^2: what these rows add to the trace of A."""
        return float(weights @ np.einsum("ij,ij->i", self.values, self.values))

    @abstractmethod
    def room(self, n: int) -> Self:
        """Uninitialised features of the same kind for n rows."""

    @abstractmethod
    def put(self, start: int, rows: Self) -> None:
        """Overwrite the rows from ``start`` on."""

    def joined(self, more: Self) -> Self:
        """These rows and others behind them."""
        both = self.room(len(self) + len(more))
        both.put(0, self)
        both.put(len(self), more)
        return both

    @abstractmethod
    def state(self) -> State:
        """Values for a checkpoint."""

    @abstractmethod
    def restored(self, saved: StateReader, n: int) -> Self:
        """n rows of the same kind, from what `state` has returned."""


class SparseFeatures(Features):
    """Rows with ``indices.shape[1]`` active entries each, out of ``dimension``."""

    def __init__(self, indices: npt.NDArray[np.int32], values: Array, dimension: int) -> None:
        self.indices = indices
        self.values = values
        self.dimension = dimension

    @classmethod
    def none(cls, active: int, dimension: int) -> "SparseFeatures":
        """No rows, with so many active entries each."""
        return cls(np.zeros((0, active), np.int32), np.zeros((0, active)), dimension)

    def __getitem__(self, rows: slice) -> "SparseFeatures":
        return SparseFeatures(self.indices[rows], self.values[rows], self.dimension)

    def matrix(self) -> csr_array:
        """The features as a SciPy matrix."""
        n, active = self.indices.shape
        starts = np.arange(0, n * active + 1, active)
        entries = (self.values.ravel(), self.indices.ravel(), starts)
        return csr_array(entries, shape=(n, self.dimension))

    def dense(self) -> Array:
        """The features as a full array."""
        return np.asarray(self.matrix().toarray())

    def write(self, out: npt.NDArray[np.floating]) -> None:
        """Write the features into a full array."""
        out[:] = 0.0
        out[np.arange(len(self))[:, None], self.indices] = self.values

    def _spread(self, width: int) -> Array:
        """The features as a full array, which may be padded."""
        out = aligned((len(self), width))
        self.write(out)
        return out

    def times(self, W: Array, out: Array) -> None:
        """out = Phi W."""
        weighted_rows(self.indices, self.values, W, out)

    def add_transposed(self, Y: Array, weights: Array, out: Array) -> None:
        """out += Phi^T Y, each row with its weight."""
        add_targets(out, self.indices, self.values, weights, Y)

    def add_products(self, weights: Array, out: npt.NDArray[np.floating]) -> None:
        """out += sum of w phi phi^T, a full square."""
        add_square(out, self.indices, self.values, weights, 0, self._active, upper=False)

    def bands(self) -> npt.NDArray[np.int64] | None:
        if not blocks_ascend(self.indices):
            return None
        firsts = [self.indices[:, k : k + CELLS].min() for k in range(0, self._active, CELLS)]
        return np.array([0, *firsts[1:], self.dimension])

    def add_bands(self, first: int, last: int, out: npt.NDArray[np.floating]) -> None:
        stop = min(last * CELLS, self._active)
        ones = np.ones(len(self))
        add_square(out, self.indices, self.values, ones, first * CELLS, stop, upper=True)

    @property
    def _active(self) -> int:
        return self.indices.shape[1]

    def gram(self, other: "SparseFeatures") -> Array:
        """Phi Phi'^T: inner products of these rows with those of ``other``."""
        products = np.empty((len(self), len(other)))
        for start in range(0, len(other), _GRAM_COLUMNS):
            part = other[start : start + _GRAM_COLUMNS]
            columns = aligned((self.dimension, padded(len(part))))
            columns[part.indices, np.arange(len(part))[:, None]] = part.values
            out = aligned((len(self), columns.shape[1]))
            self.times(columns, out)
            products[:, start : start + len(part)] = out[:, : len(part)]
        return products

    def inner(self, T: Array) -> Array:
        """Phi T^T for a few dense rows T, which may be padded."""
        if _is_worth_spreading(len(self), self.indices.shape[1], self.dimension):
            return np.asarray(self._spread(T.shape[1]) @ T.T)
        out = np.empty((len(self), len(T)))
        dot_rows(self.indices, self.values, T, out)
        return out

    def combine(self, P: Array, out: Array) -> None:
        """out = Phi P for a square P with padded rows and columns."""
        if self.indices.shape[1] > MOST_ACTIVE * len(P):
            np.matmul(self._spread(len(P)), P, out=out)
        else:
            combine_rows(self.indices, self.values, P, out)

    def quadratic(self, P: Array) -> Array:
        """phi^T P phi of each row, for a symmetric P, which may be padded."""
        out = np.empty(len(self))
        quadratic_rows(self.indices, self.values, P, out)
        return out

    def with_values(self, values: Array) -> "SparseFeatures":
        """The same entries with other values."""
        return SparseFeatures(self.indices, values, self.dimension)

    def room(self, n: int) -> "SparseFeatures":
        """Uninitialised features of the same kind for n rows."""
        shape = (n, self.indices.shape[1])
        return SparseFeatures(aligned(shape, np.int32), aligned(shape), self.dimension)

    def put(self, start: int, rows: "SparseFeatures") -> None:
        """Overwrite the rows from ``start`` on."""
        self.indices[start : start + len(rows)] = rows.indices
        self.values[start : start + len(rows)] = rows.values

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"indices": self.indices, "values": self.values}

    def restored(self, saved: StateReader, n: int) -> "SparseFeatures":
        """n rows of the same kind, from what `state` has returned."""
        shape = (n, self.indices.shape[1])
        indices = saved.cells("indices", shape, self.dimension)
        return SparseFeatures(indices, saved.array("values", shape), self.dimension)


class DenseFeatures(Features):
    """Rows whose entries are all active."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.dimension = int(values.shape[1])

    def __getitem__(self, rows: slice) -> "DenseFeatures":
        return DenseFeatures(self.values[rows])

    def matrix(self) -> Array:
        """The features as a NumPy array."""
        return self.values

    def dense(self) -> Array:
        """The features as a full array."""
        return self.values

    def write(self, out: npt.NDArray[np.floating]) -> None:
        """Write the features into a full array."""
        out[:] = self.values

    def times(self, W: Array, out: Array) -> None:
        """out = Phi W."""
        np.matmul(self.values, W, out=out)

    def add_transposed(self, Y: Array, weights: Array, out: Array) -> None:
        """out += Phi^T Y, each row with its weight."""
        out += (self.values * weights[:, None]).T @ Y

    def add_products(self, weights: Array, out: npt.NDArray[np.floating]) -> None:
        """out += sum of w phi phi^T, a full square."""
        out += (self.values * weights[:, None]).T @ self.values

    def gram(self, other: "DenseFeatures") -> Array:
        """Phi Phi'^T: inner products of these rows with those of ``other``."""
        return np.asarray(self.values @ other.values.T)

    def inner(self, T: Array) -> Array:
        """Phi T^T for a few dense rows T, which may be padded."""
        return np.asarray(self.values @ T[:, : self.dimension].T)

    def combine(self, P: Array, out: Array) -> None:
        """out = Phi P for a square P with padded rows and columns."""
        np.matmul(self.values, P[: self.dimension], out=out)

    def quadratic(self, P: Array) -> Array:
        """phi^T P phi of each row, for a symmetric P, which may be padded."""
        D = self.dimension
        return np.asarray(((self.values @ P[:D, :D]) * self.values).sum(axis=1))

    def with_values(self, values: Array) -> "DenseFeatures":
        """The same entries with other values."""
        return DenseFeatures(values)

    def room(self, n: int) -> "DenseFeatures":
        """Uninitialised features of the same kind for n rows."""
        return DenseFeatures(np.empty((n, self.dimension)))

    def put(self, start: int, rows: "DenseFeatures") -> None:
        """Overwrite the rows from ``start`` on."""
        self.values[start : start + len(rows)] = rows.values

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"values": self.values}

    def restored(self, saved: StateReader, n: int) -> "DenseFeatures":
        """n rows of the same kind, from what `state` has returned."""
        return DenseFeatures(saved.array("values", (n, self.dimension)))


def _is_worth_spreading(n: int, active: int, dimension: int) -> bool:
    """Whether a full product with a few rows is quicker than one that skips zeros.

    It reads them once, not some entries for each row. By measurement, with AVX-512 and with AVX2,
    an entry takes it 1.2 + 0.033 n nanoseconds, and the other one 0.6 each time that it is read.

    >>> [_is_worth_spreading(n, 427, 2536) for n in (1, 16, 25)]
    [False, False, True]
    >>> _is_worth_spreading(1000, 120, 3632)
    False
    """
    return n * (18 * active - dimension) > 36 * dimension
