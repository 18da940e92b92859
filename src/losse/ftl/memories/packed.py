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
"""Rows that enter A together. As many others may come meanwhile."""


class PackedMemory(Memory):
    """A as the lower triangle of blocks, one per pair of grids.

    A is several gigabytes, and every batch touches most of it. So rows wait until they are
    `WAITING`, and enter it together, a few grids for each row that comes: to write all of A for the
    first time takes seconds. Products with A account for what has not entered.
    """

    def __init__(
        self, n_grids: int, size: int, n_active: int, n_outputs: int, dtype: npt.DTypeLike
    ) -> None:
        super().__init__(n_grids * size, n_outputs)
        self.size = size
        self.n_active = n_active
        self.A = np.zeros((n_grids * (n_grids + 1) // 2, size, size), dtype)
        self._waiting: list[SparseFeatures] = []
        self._entering: SparseFeatures | None = None
        self._share = 0.0  # of A, that the latter have entered
        self._entered = 0  # grids whose blocks with themselves and those before have them

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T, now or soon."""
        assert isinstance(features, SparseFeatures)
        if (weights < 0).any():
            self.settle()
            self._add(features, weights, 0, self._n_grids)
            return
        self.wait([features.scaled(np.sqrt(weights))])

    def wait(self, rows: list[SparseFeatures]) -> None:
        """Let more rows wait, each times the root of its weight; or enter, if they are many."""
        self._waiting.extend(rows)
        came, waiting = sum(map(len, rows)), sum(map(len, self._waiting))
        if waiting >= 2 * WAITING:
            self.settle()
        elif self._entering is None and waiting >= WAITING:
            self._entering, self._waiting = _joined(self._waiting), []
            self._share, self._entered = 0.0, 0
        else:  # as many rows may come meanwhile: a little more than their share
            self._enter(self._share + 8 / 7 * came / WAITING)

    def waiting_rows(self, factor: float) -> list[SparseFeatures]:
        """The rows that wait, none of which is in A, their weights times ``factor``."""
        self._enter(1.0)
        return [rows.scaled(np.full(len(rows), np.sqrt(factor))) for rows in self._waiting]

    def settle(self) -> None:
        """Let all rows that wait enter A."""
        self._enter(1.0)
        if self._waiting:
            rows = _joined(self._waiting)
            self._waiting.clear()
            self._add(rows, np.ones(len(rows)), 0, self._n_grids)

    def _enter(self, share: float) -> None:
        """Let the rows that enter have entered a share of A: as many grids' pairs with others."""
        rows = self._entering
        if rows is None:
            return
        self._share = min(share, 1.0)
        last = self._grids_of(self._share)
        self._add(rows, np.ones(len(rows)), self._entered, last)
        self._entered = last
        if last == self._n_grids:
            self._entering = None

    def _grids_of(self, share: float) -> int:
        """First grids whose pairs are a share of all pairs, nearly."""
        return round(self._n_grids * float(np.sqrt(share)))

    def _add(self, rows: SparseFeatures, weights: Array, first: int, last: int) -> None:
        add_packed(self.A, self.size, rows.indices, rows.values, weights, first, last)

    @property
    def _n_grids(self) -> int:
        return self.dimension // self.size

    @property
    def _apart(self) -> list[tuple[SparseFeatures, float]]:
        """Features whose products, each with a sign, are still to be added to A.

        Of rows that enter: all of their products, less those of the grids that have entered.
        """
        apart = [(rows, 1.0) for rows in self._waiting]
        if (rows := self._entering) is not None:
            active = rows.indices.shape[1] // self._n_grids * self._entered
            indices, values = rows.indices[:, :active].copy(), rows.values[:, :active].copy()
            apart += [(rows, 1.0), (SparseFeatures(indices, values, self.dimension), -1.0)]
        return apart

    def absorb(self, other: Memory, factor: float, change: Change | None) -> None:
        """Add the sums of another memory of the same layout, times ``factor``."""
        assert isinstance(other, PackedMemory)
        waiting = other.waiting_rows(factor)
        super().absorb(other, factor, change)
        self.wait(waiting)

    def clear(self) -> None:
        """Forget everything."""
        self._waiting.clear()
        self._entering = None
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
        """The rows that wait, and those that enter."""
        entering = 0 if self._entering is None else len(self._entering)
        own: State = {"waiting": [len(rows) for rows in self._waiting], "entering": entering}
        if self._waiting:
            own |= _state("waiting", _joined(self._waiting))
        if self._entering is not None:
            own |= {"share": self._share} | _state("entering", self._entering)
        return own

    def restore_waiting(self, saved: StateReader) -> None:
        """Take over what `waiting_state` has returned."""
        lengths = saved.counts("waiting", at_most=2 * WAITING)
        self._waiting, self._entering = [], None
        if lengths:
            rows, ends = self._read(saved, "waiting", sum(lengths)), np.cumsum(lengths)
            for start, end in zip(ends - lengths, ends, strict=True):
                self._waiting.append(rows[int(start) : int(end)])
        n = saved.count("entering", at_most=2 * WAITING) if saved.has("entering") else 0
        if n:
            self._entering = self._read(saved, "entering", n)
            self._share = saved.number("share", at_least=0.0)
            self._entered = self._grids_of(self._share)
            if self._entered >= self._n_grids:
                saved.refuse("share says that all rows have entered")

    def _read(self, saved: StateReader, name: str, n: int) -> SparseFeatures:
        indices = saved.cells(f"{name}_indices", (n, self.n_active), self.dimension)
        values = saved.array(f"{name}_values", indices.shape)
        return SparseFeatures(indices, values, self.dimension)

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows; computed in A's precision."""
        dtype = self.A.dtype
        V = aligned((len(W), padded(W.shape[1], dtype)), dtype)
        V[:, : W.shape[1]] = W
        out = aligned(V.shape, dtype)
        packed_times(self.A, self.size, V, out)
        result = np.array(out[:, : W.shape[1]], dtype=np.float64)
        for features, sign in self._apart:
            image = aligned((len(features), W.shape[1]))
            features.times(W, image)
            features.add_transposed(image, np.full(len(features), sign), result)
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


def _joined(parts: list[SparseFeatures]) -> SparseFeatures:
    """Rows one after the other."""
    indices = np.concatenate([rows.indices for rows in parts])
    values = np.concatenate([rows.values for rows in parts])
    return SparseFeatures(indices, values, parts[0].dimension)


def _state(name: str, rows: SparseFeatures) -> State:
    return {f"{name}_indices": rows.indices, f"{name}_values": rows.values}
