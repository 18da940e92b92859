r"""Algorithm 2 of the paper: solve for the active weights only, row after row.

For a sample (phi, y) with active cells s, and all other cells s', the lines of Algorithm 2 are

1. :math:`A_{ss} \leftarrow A_{ss} + \phi_s \phi_s^T`
2. :math:`B_s \leftarrow B_s + \phi_s y^T`
3. :math:`W_s \leftarrow (A_{ss} + \lambda I)^{-1} (B_s - A_{ss'} W_{s'})`, with
   :math:`\lambda = \varepsilon t` after t samples.

`SparseSolver.learn_row` is these three lines. `FastSparseSolver` is the same update in compiled
code, which reads a tenth of A.
"""

import numpy as np

from losse._kernels.block_update import AT_ONCE, RECENT, update_rows
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features, SparseFeatures
from losse.ftl.memories.base import Memory
from losse.ftl.solvers.base import Solver, ridge_solve
from losse.ftl.solvers.conjugate import RENEWAL, approach_leader, take_out
from losse.storage.state import State, StateReader
from losse.typing import Array


class SparseSolver(Solver):
    """Algorithm 2 as the paper writes it, for memories of any layout.

    Costs the same for every sample, however many came before. It approaches the leader rather
    than reaching it, since the other weights wait until their own cells are visited.
    """

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take the rows of a batch in, one after the other."""
        assert isinstance(features, SparseFeatures)
        for r in range(len(features)):
            self.learn_row(features[r : r + 1], Y[r : r + 1], weights[r : r + 1])

    def learn_row(self, row: SparseFeatures, y: Array, weight: Array) -> None:
        """Update the active weights by one sample.

        Line 3 is solved for the step W_s <- W_s + D, that is
        (A_ss + lambda I) D = B_s - A_s W - lambda W_s, which loses fewer digits.
        """
        memory, s = self.memory, row.indices[0]
        memory.add(row, y, weight)  # lines 1 and 2
        residual = memory.B[s] - memory.rows_times(s, self.weights)
        right = residual - self.penalty * self.weights[s]
        self.weights[s] += ridge_solve(memory.block(s), self.penalty, right)  # line 3

    def refresh(self) -> None:
        """Do nothing: only the weights derive from the memories."""

    def solve(self) -> None:
        """Approach the leader of the memories as they are now."""
        if not self.memory.large:
            super().solve()
            return
        approach_leader(self.memory, self.ridge, self.weights, RENEWAL)
        self.refresh()

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        if not self.memory.large:
            super()._unlearn(features, Y, weights, penalty)
            return
        take_out(self.memory, self.ridge, self.weights, features, Y, weights, RENEWAL)
        self.solve()


class FastSparseSolver(SparseSolver):
    """Algorithm 2 on a square A, by a kernel that seldom reads whole rows of A.

    `losse._kernels.block_update` says why the result is the same: right after a step the residual
    of the cells that it touched is known, and few later steps change it. So the last few steps are
    kept here, with the time at which each cell was last active.
    """

    def __init__(self, memory: Memory, ridge: float, n_active: int) -> None:
        super().__init__(memory, ridge)
        D, S = self.weights.shape
        dtype = memory.A.dtype
        self._clock = 0
        self._last_active = np.full(D, -RECENT - 1, dtype=np.int64)
        self._listed = np.zeros(D + 1, dtype=np.int32)  # cells with weights, and their number
        self._recent_cells = np.zeros((RECENT, n_active), dtype=np.int32)
        self._recent_steps = aligned((RECENT, n_active, S))
        self._recent_ridge = np.zeros(RECENT)
        self._system = aligned((n_active, padded(n_active) + S))
        self._scratch = aligned((2, n_active, S))
        self._weights_like_A = self.weights
        if dtype != self.weights.dtype:
            self._weights_like_A = aligned((D, padded(S, dtype)), dtype)
        self._product = aligned((AT_ONCE, self._weights_like_A.shape[1]), dtype)

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take the rows of a batch in, one after the other."""
        assert isinstance(features, SparseFeatures)
        memory = self.memory
        memory.total = update_rows(
            memory.A, memory.B, self.weights, self._weights_like_A, self._listed, memory.squares,
            memory.n_outputs, features.indices, features.values, Y, weights, memory.total,
            self.ridge, self._clock, self._last_active, self._recent_cells, self._recent_steps,
            self._recent_ridge, self._system, self._scratch, self._product,
        )  # fmt: skip
        memory.sums += weights @ Y
        self._clock += len(features)

    def refresh(self) -> None:
        """Drop the recent steps, and adopt the weights as they are."""
        self._last_active[:] = self._clock - RECENT - 1
        self._adopt_weights()

    def state(self) -> State:
        """Values for a checkpoint, with the recent steps."""
        return super().state() | {
            "clock": self._clock,
            "last_active": self._last_active,
            "recent_cells": self._recent_cells,
            "recent_steps": self._recent_steps[:, :, : self.memory.n_outputs],
            "recent_ridge": self._recent_ridge,
        }

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        super().restore(saved)
        self._clock = saved.count("clock")
        saved.array("last_active", out=self._last_active)
        if ((self._last_active < -RECENT - 1) | (self._last_active >= self._clock)).any():
            saved.refuse("last_active lies outside the past")
        shape = self._recent_cells.shape
        self._recent_cells = saved.cells("recent_cells", shape, self.memory.dimension)
        saved.columns("recent_steps", out=self._recent_steps, width=self.memory.n_outputs)
        saved.array("recent_ridge", out=self._recent_ridge)
        self._adopt_weights()

    def _adopt_weights(self) -> None:
        """Derive anew what the kernel keeps beside the weights."""
        cells = np.flatnonzero(self.weights.any(axis=1))
        self._listed[: len(cells)], self._listed[-1] = cells, len(cells)
        if self._weights_like_A is self.weights:
            return
        with np.errstate(over="ignore"):  # beyond the range of floats: infinity, as in the kernel
            self._weights_like_A[:, : self.weights.shape[1]] = self.weights
