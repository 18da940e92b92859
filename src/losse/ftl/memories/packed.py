"""`PackedMemory`: A of a large model as its lower triangle, in blocks of grid pairs.

Half the size of the square, and a batch enters one block after the other while it is in cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from losse._kernels.accumulate import add_packed
from losse._kernels.packed import packed_block, packed_rows_times, packed_times, packed_to_square
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features, SparseFeatures
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.typing import Array

if TYPE_CHECKING:
    from losse.ftl.targets import Change

WAITING = 500
"""Rows that enter A together."""


class PackedMemory(Memory):
    """A as the lower triangle of blocks, one per pair of grids.

    A is several gigabytes, and every batch touches most of it. So rows wait until they are
    `WAITING`, and enter it together; products with A account for them in the meantime.
    """

    def __init__(
        self, n_grids: int, size: int, n_active: int, n_outputs: int, dtype: npt.DTypeLike
    ) -> None:
        super().__init__(n_grids * size, n_outputs)
        self.size = size
        self.n_active = n_active
        self.A = np.zeros((n_grids * (n_grids + 1) // 2, size, size), dtype)
        self._waiting: list[SparseFeatures] = []

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T, now or soon."""
        assert isinstance(features, SparseFeatures)
        if (weights < 0).any():
            self.settle()
            add_packed(self.A, self.size, features.indices, features.values, weights)
            return
        self.wait([features.scaled(np.sqrt(weights))])

    def wait(self, rows: list[SparseFeatures]) -> None:
        """Let more rows wait, each times the root of its weight; all enter A if they are many."""
        self._waiting.extend(rows)
        if sum(map(len, self._waiting)) >= WAITING:
            self.settle()

    def waiting_rows(self, factor: float) -> list[SparseFeatures]:
        """The rows that wait, their weights times ``factor``."""
        return [rows.scaled(np.full(len(rows), np.sqrt(factor))) for rows in self._waiting]

    def settle(self) -> None:
        """Let all rows that wait enter A."""
        if not self._waiting:
            return
        indices = np.concatenate([features.indices for features in self._waiting])
        values = np.concatenate([features.values for features in self._waiting])
        self._waiting.clear()
        add_packed(self.A, self.size, indices, values, np.ones(len(indices)))

    def absorb(self, other: Memory, factor: float, change: Change | None) -> None:
        """Add the sums of another memory of the same layout, times ``factor``."""
        assert isinstance(other, PackedMemory)
        waiting = other.waiting_rows(factor)
        super().absorb(other, factor, change)
        self.wait(waiting)

    def clear(self) -> None:
        """Forget everything."""
        self._waiting.clear()
        super().clear()

    def diagonal(self) -> Array:
        """The diagonal of A."""
        return np.ascontiguousarray(np.einsum("gii->gi", self.diagonal_blocks())).ravel()

    def state(self) -> State:
        """Values for a checkpoint, with the rows that wait."""
        return super().state() | self.waiting_state()

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        self.restore_waiting(saved)

    def waiting_state(self) -> State:
        """The rows that wait."""
        own: State = {"waiting": [len(rows) for rows in self._waiting]}
        if self._waiting:
            own["waiting_indices"] = np.concatenate([rows.indices for rows in self._waiting])
            own["waiting_values"] = np.concatenate([rows.values for rows in self._waiting])
        return own

    def restore_waiting(self, saved: StateReader) -> None:
        """Take over what `waiting_state` has returned."""
        lengths = saved.counts("waiting", at_most=WAITING)
        self._waiting = []
        if not lengths:
            return
        indices = saved.cells("waiting_indices", (sum(lengths), self.n_active), self.dimension)
        values = saved.array("waiting_values", indices.shape)
        ends = np.cumsum(lengths)
        for start, end in zip(ends - lengths, ends, strict=True):
            rows = slice(int(start), int(end))
            self._waiting.append(SparseFeatures(indices[rows], values[rows], self.dimension))

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

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""
        return self.dimension // self.size, self.size, self.size

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
