"""Algorithm 2 of the paper: solve for the active weights only, row after row."""

import numpy as np

from losse._kernels.block_update import AT_ONCE, RECENT, update_rows
from losse._kernels.simd import aligned, padded
from losse.encoders import Features, SparseFeatures
from losse.ftl.bordered_memory import BorderedMemory
from losse.ftl.conjugate import RENEWAL, approach_leader, take_out
from losse.ftl.memory import Memory, SquareMemory
from losse.ftl.packed_memory import PackedMemory
from losse.ftl.solver import Solver, ridge_solve
from losse.storage.state import State, StateReader
from losse.typing import Array


class SparseSolver(Solver):
    """Block-wise update: W_s = (A_ss + lambda I)^-1 (B_s - A_ss' W_s') for each sample's cells s.

    Costs the same for every sample, however many came before. It approaches the leader rather
    than reaching it, since the other weights wait until their own cells are visited.
    """

    def __init__(self, memory: Memory, ridge: float, n_active: int) -> None:
        super().__init__(memory, ridge)
        D, S = self.weights.shape
        self._clock = 0
        self._last_active = np.full(D, -RECENT - 1, dtype=np.int64)
        self._weights_like_A = self.weights
        if not isinstance(memory, SquareMemory):
            return
        self._listed = np.zeros(D + 1, dtype=np.int32)
        self._recent_cells = np.zeros((RECENT, n_active), dtype=np.int32)
        self._recent_steps = aligned((RECENT, n_active, S))
        self._recent_ridge = np.zeros(RECENT)
        self._system = aligned((n_active, padded(n_active) + S))
        self._scratch = aligned((2, n_active, S))
        if memory.A.dtype != self.weights.dtype:
            self._weights_like_A = aligned((D, padded(S, memory.A.dtype)), memory.A.dtype)
        self._product = aligned((AT_ONCE, self._weights_like_A.shape[1]), memory.A.dtype)

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take the rows of a batch in, one after the other."""
        assert isinstance(features, SparseFeatures)
        if isinstance(self.memory, SquareMemory):
            self._learn_square(features, Y, weights)
        else:
            for r in range(len(features)):
                self._learn_row(features[r : r + 1], Y[r : r + 1], weights[r : r + 1])

    def refresh(self) -> None:
        """No step is recent any more, and the weights may be others."""
        self._last_active[:] = self._clock - RECENT - 1
        self._adopt_weights()

    def renew(self) -> None:
        """Make the weights the leader of the memories as they are now."""
        if isinstance(self.memory, SquareMemory):
            super().renew()
        else:
            approach_leader(self.memory, self.ridge, self.weights, RENEWAL)

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        if isinstance(self.memory, SquareMemory):
            super()._unlearn(features, Y, weights, penalty)
        else:
            take_out(self.memory, self.ridge, self.weights, features, Y, weights, RENEWAL)
            self.renew()

    def state(self) -> State:
        """What a checkpoint keeps: the recent steps, too."""
        own: State = {}
        if isinstance(self.memory, SquareMemory):
            own = {
                "clock": self._clock,
                "last_active": self._last_active,
                "recent_cells": self._recent_cells,
                "recent_steps": self._recent_steps,
                "recent_ridge": self._recent_ridge,
            }
        return super().state() | own

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        if not isinstance(self.memory, SquareMemory):
            return
        self._clock = saved.count("clock")
        saved.array("last_active", out=self._last_active)
        if ((self._last_active < -RECENT - 1) | (self._last_active >= self._clock)).any():
            saved.refuse("last_active lies outside the past")
        shape = self._recent_cells.shape
        self._recent_cells = saved.cells("recent_cells", shape, self.memory.dimension)
        saved.array("recent_steps", out=self._recent_steps)
        saved.array("recent_ridge", out=self._recent_ridge)
        self._adopt_weights()

    def _adopt_weights(self) -> None:
        """Derive anew what the kernel keeps beside the weights."""
        if not isinstance(self.memory, SquareMemory):
            return
        cells = np.flatnonzero(self.weights.any(axis=1))
        self._listed[: len(cells)], self._listed[-1] = cells, len(cells)
        if self._weights_like_A is self.weights:
            return
        with np.errstate(over="ignore"):  # beyond the range of floats: infinity, as in the kernel
            self._weights_like_A[:, : self.weights.shape[1]] = self.weights

    def _learn_square(self, features: SparseFeatures, Y: Array, weights: Array) -> None:
        memory = self.memory
        memory.total = update_rows(
            memory.A, memory.B, self.weights, self._weights_like_A, self._listed, memory.squares,
            memory.n_outputs, features.indices, features.values, Y, weights, memory.total,
            self.ridge, self._clock, self._last_active, self._recent_cells, self._recent_steps,
            self._recent_ridge, self._system, self._scratch, self._product,
        )  # fmt: skip
        self._clock += len(features)

    def _learn_row(self, row: SparseFeatures, y: Array, weight: Array) -> None:
        """The update of one sample as the paper writes it, on a packed A."""
        assert isinstance(self.memory, PackedMemory | BorderedMemory)
        memory, cells = self.memory, row.indices[0]
        memory.add(row, y, weight)
        ridge = self.ridge * memory.total
        residual = memory.B[cells] - memory.rows_times(cells, self.weights)
        right = residual - ridge * self.weights[cells]
        self.weights[cells] += ridge_solve(memory.block(cells), ridge, right)
