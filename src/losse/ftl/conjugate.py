r"""The leader of a model too large to invert: conjugate gradients, continued from batch to batch.

Solves :math:`(A + \lambda I) W = B` for all outputs at once. The residual B - (A + lambda I) W is
kept from one batch to the next, so a warm start costs no product with A. Each grid's own block of A
is the preconditioner.
"""

import numpy as np

from losse._kernels.simd import aligned
from losse.encoders import Features
from losse.encoders.features import Array
from losse.ftl.memory import Memory

EXCESS = 0.008
"""Stop when the objective is certainly within this share of its minimum."""
REFRESH = 1.1
"""Growth of total after which the preconditioner is made anew."""


class ConjugateGradients:
    """Weights near the leader, for memories of any size."""

    def __init__(self, memory: Memory, ridge: float, W: Array, iterations: int | None) -> None:
        self.memory = memory
        self.ridge = ridge
        self.iterations = iterations
        self.weights = W
        self._lambda = ridge * memory.total
        self._residual = memory.B - memory.times(W) - self._lambda * W
        self._precondition_at = 0.0

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Follow a batch that is already in the memories."""
        error = aligned(Y.shape)
        features.times(self.weights, error)
        np.subtract(Y, error, out=error)
        features.add_transposed(error, weights, self._residual)
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        self.solve()

    def solve(self) -> None:
        """Iterate until the leader is near, or the number of iterations is used up."""
        if self.memory.total > REFRESH * self._precondition_at:
            self._refresh()
        W, R = self.weights, self._residual
        Z = self._precondition(R)
        direction = Z.copy()
        rz = (R * Z).sum(axis=0)
        done = 0
        # The objective exceeds its minimum by at most ||R||^2 / lambda.
        while done != self.iterations and (R * R).sum() > EXCESS * self._lambda * self._objective():
            image = self.memory.times(direction) + self._lambda * direction
            step = rz / _nonzero((direction * image).sum(axis=0))
            W += step * direction
            R -= step * image
            Z = self._precondition(R)
            before, rz = rz, (R * Z).sum(axis=0)
            direction *= rz / _nonzero(before)
            direction += Z
            done += 1

    def _objective(self) -> float:
        return self.memory.objective(self.weights, self._residual, self._lambda)

    def _refresh(self) -> None:
        self._precondition_at = self.memory.total
        blocks = self.memory.diagonal_blocks()
        ridge = self._lambda * np.eye(blocks.shape[1])
        for k, block in enumerate(blocks):  # one by one: all at once would need twice the memory
            blocks[k] = np.linalg.inv(block + ridge)
        self._inverse_blocks = blocks

    def _precondition(self, R: Array) -> Array:
        count, size, _ = self._inverse_blocks.shape
        filled = np.zeros((count * size, R.shape[1]))
        filled[: len(R)] = R
        Z = self._inverse_blocks @ filled.reshape(count, size, -1)
        return np.asarray(Z.reshape(count * size, -1)[: len(R)])


def _nonzero(values: Array) -> Array:
    return np.where(values > 0, values, 1.0)
