"""`BorderedMemory`: A of a large model with terms beside its grids, packed and with a border.

A term is active in every row, so its row of A is full. As sums of products with every feature,
these rows are made exactly as B is, with the terms as targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features, SparseFeatures
from losse.ftl.memories.base import Memory
from losse.ftl.memories.packed import PackedMemory
from losse.storage.state import State, StateReader
from losse.typing import Array

if TYPE_CHECKING:
    from losse.ftl.targets import Change


class BorderedMemory(Memory):
    """A of the grids as `PackedMemory` has it; ``border`` is (D, terms), padded: sum w phi t^T."""

    def __init__(
        self,
        n_grids: int,
        size: int,
        n_active: int,
        n_terms: int,
        n_outputs: int,
        dtype: npt.DTypeLike,
    ) -> None:
        super().__init__(n_grids * size + n_terms, n_outputs)
        self.n_terms = n_terms
        self._n_cells = n_grids * size
        self._grids = PackedMemory(n_grids, size, n_active - n_terms, 0, dtype)
        self.A = self._grids.A
        self.border = aligned((self.dimension, padded(n_terms)))

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T, now or soon."""
        assert isinstance(features, SparseFeatures)
        cells = features.indices[:, : -self.n_terms].copy()
        values = features.values[:, : -self.n_terms].copy()
        self._grids.add_products(SparseFeatures(cells, values, self._n_cells), weights)
        terms = aligned((len(features), self.border.shape[1]))
        terms[:, : self.n_terms] = features.values[:, -self.n_terms :]
        features.add_transposed(terms, weights, self.border)

    def absorb(self, other: Memory, factor: float, change: Change | None) -> None:
        """Add the sums of another memory of the same layout, times ``factor``."""
        assert isinstance(other, BorderedMemory)
        waiting = other._grids.waiting_rows(factor)
        super().absorb(other, factor, change)
        self._grids.wait(waiting)
        self.border += factor * other.border

    def scale(self, factor: float) -> None:
        """Multiply the weight of every sample by ``factor``."""
        self._grids.settle()
        self.border *= factor
        super().scale(factor)

    def clear(self) -> None:
        """Forget everything."""
        self._grids.clear()
        self.border[:] = 0.0
        super().clear()

    def diagonal(self) -> Array:
        """The diagonal of A."""
        return np.concatenate([self._grids.diagonal(), self._corner.diagonal()])

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""
        cells, terms = W[: self._n_cells], W[self._n_cells :]
        border = self.border[:, : self.n_terms]
        return np.vstack([self._grids.times(cells) + border[: self._n_cells] @ terms, border.T @ W])

    def square(self) -> Array:
        """A as a new full square of doubles."""
        n, border = self._n_cells, self.border[:, : self.n_terms]
        out = np.empty((self.dimension, self.dimension))
        out[:n, :n] = self._grids.square()
        out[:, n:] = border
        out[n:] = border.T
        return out

    def rows_times(self, cells: npt.NDArray[np.int32], W: Array) -> Array:
        """Some rows of A, times W; those of all terms come last."""
        n = len(cells) - self.n_terms
        out = aligned((len(cells), W.shape[1]))
        border = self.border[:, : self.n_terms]
        out[:n] = self._grids.rows_times(cells[:n], W[: self._n_cells])
        out[:n] += border[cells[:n]] @ W[self._n_cells :]
        out[n:] = border.T @ W
        return out

    def block(self, cells: npt.NDArray[np.int32]) -> Array:
        """A_ss for some cells s, in ascending order, of which the terms are the last."""
        n = len(cells) - self.n_terms
        out = np.empty((len(cells), len(cells)))
        out[:n, :n] = self._grids.block(cells[:n])
        out[:, n:] = self.border[cells, : self.n_terms]
        out[n:] = out[:, n:].T
        return out

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""
        count, size, _ = self._grids.block_shape
        return count + -(-self.n_terms // size), size, size

    def diagonal_blocks(self) -> Array:
        """One block per grid, then slices of the terms; the last is filled up with the identity."""
        count, size, _ = self.block_shape
        blocks = np.tile(np.eye(size), (count, 1, 1))
        grids = self._grids.diagonal_blocks()
        blocks[: len(grids)] = grids
        for k, block in enumerate(blocks[len(grids) :]):
            part = self._corner[k * size : (k + 1) * size, k * size : (k + 1) * size]
            block[: len(part), : len(part)] = part
        return blocks

    def state(self) -> State:
        """Values for a checkpoint, with the rows that wait."""
        own = {"border": self.border[:, : self.n_terms]}
        return super().state() | own | self._grids.waiting_state()

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        saved.columns("border", out=self.border, width=self.n_terms)
        self._grids.restore_waiting(saved)

    @property
    def _corner(self) -> Array:
        """Products of terms with terms."""
        return np.asarray(self.border[self._n_cells :, : self.n_terms])
