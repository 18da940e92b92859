r"""Conjugate gradients towards the leader of a model too large to invert, from batch to batch.

Solves :math:`(A + \lambda I) W = B` for all outputs at once. The residual B - (A + lambda I) W is
kept from one batch to the next, so a warm start costs no product with A. Each grid's own block of A
is the preconditioner.
"""

from collections.abc import Callable

import numpy as np

from losse._kernels.simd import aligned
from losse.encoders.features import Features
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.storage.state import State, StateReader
from losse.typing import Array

EXCESS = 0.008
"""Stop when the objective is certainly within this share of its minimum."""
REFRESH = 1.1
"""Growth of total after which the preconditioner is made anew."""
RENEWAL = 60
"""Iterations after a merge or unlearning, in solvers that do not promise to reach the leader."""
OTHER_RIDGE = 10
"""Iterations for the leader of another ridge."""
PER_ROW = 2e8
"""Operations that a row pays for in solvers that do not promise to reach the leader."""
MOST_ITERATIONS = 1000
"""Of a solution that has no limit of its own; rounding may keep it from its tolerance."""


class ConjugateGradients:
    """Weights near the leader, for memories of any size.

    ``iterations`` are those of a batch; None for as many as it takes. If they are limited, and cost
    more than the rows of a batch pay for, the weights wait until enough rows have come. So the cost
    of a row does not depend on the size of batches.
    """

    spent = 0.0

    def __init__(self, memory: Memory, ridge: float, W: Array, iterations: int | None) -> None:
        self.memory = memory
        self.ridge = ridge
        self.iterations = MOST_ITERATIONS if iterations is None else iterations
        self._cost = 0.0 if iterations is None else iterations * float(len(W)) ** 2 * W.shape[1]
        self._paid = 0.0
        self.weights = W
        self._lambda = 0.0
        self._residual = aligned(W.shape)
        self._precondition_at = 0.0

    def start(self) -> None:
        """Follow the memories as they are."""
        W, self._lambda = self.weights, self.ridge * self.memory.total
        self._residual[:] = self.memory.B - self.memory.times(W) - self._lambda * W
        self.solve()

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Follow a batch that is already in the memories."""
        error = aligned(Y.shape)
        features.times(self.weights, error)
        np.subtract(Y, error, out=error)
        features.add_transposed(error, weights, self._residual)
        before, self._lambda = self._lambda, self.ridge * self.memory.total
        self._residual -= (self._lambda - before) * self.weights
        self._paid += PER_ROW * len(features)
        if self._paid >= self._cost:
            self.solve()

    def solve(self) -> None:
        """Iterate until the leader is near, or the number of iterations is used up."""
        self._paid = 0.0
        if self.memory.total > REFRESH * self._precondition_at:
            self._precondition_at = self.memory.total
            self._inverse_blocks = block_inverses(self.memory, self._lambda)
        iterate(
            self._times, self._inverse_blocks, self.weights, self._residual, self.is_near,
            self.iterations,
        )  # fmt: skip

    def _times(self, V: Array) -> Array:
        return self.memory.times(V) + self._lambda * V

    def is_near(self) -> bool:
        """Whether the weights are certainly near the leader, but for rounding."""
        # The objective exceeds its minimum by at most ||R||^2 / lambda.
        W, R = self.weights, self._residual
        return bool(
            (R * R).sum() <= EXCESS * self._lambda * self.memory.objective(W, R, self._lambda)
        )

    def state(self) -> State:
        """Values for a checkpoint; the weights are the solver's."""
        return {
            "lambda": self._lambda,
            "paid": self._paid,
            "residual": self._residual[:, : self.memory.n_outputs],
            "precondition_at": self._precondition_at,
            "inverse_blocks": self._inverse_blocks,
        }

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._lambda = saved.positive("lambda")
        self._paid = saved.number("paid", at_least=0.0) if saved.has("paid") else 0.0
        saved.columns("residual", out=self._residual, width=self.memory.n_outputs)
        self._precondition_at = saved.number("precondition_at", at_least=0.0)
        self._inverse_blocks = saved.array("inverse_blocks", self.memory.block_shape)


def approach_leader(memory: Memory, ridge: float, W: Array, iterations: int | None) -> None:
    """Change the weights towards the leader of memories that have changed."""
    ConjugateGradients(memory, ridge, W, iterations).start()


def leader_for(memory: Memory, ridge: float, W: Array) -> Array:
    """Weights near the leader for another ridge, starting from those for this one."""
    other = W.copy()
    approach_leader(memory, ridge, other, OTHER_RIDGE)
    return other


def take_out(
    memory: Memory,
    ridge: float,
    W: Array,
    features: Features,
    Y: Array,
    weights: Array,
    iterations: int | None,
) -> None:
    """Take samples out of the memories, and change the weights towards the leader of the rest.

    Raises `NotLearnedError`, and changes nothing, if a direction shows that the rest cannot be a
    sum of squares.
    """
    penalty = ridge * (memory.total - float(weights.sum()))
    squares = memory.squares.sum() - float((weights @ (Y * Y)).sum())
    B = memory.B.copy()
    features.add_transposed(Y, -weights, B)

    def times(V: Array) -> Array:
        image, rows = memory.times(V) + penalty * V, aligned((len(features), V.shape[1]))
        features.times(V, rows)
        features.add_transposed(rows, -weights, image)
        return image

    left = W.copy()
    R = B - times(left)

    def near() -> bool:
        objective = max(squares - (left * (B + R)).sum(), penalty * (left * left).sum())
        return bool((R * R).sum() <= EXCESS * penalty * objective)

    most = MOST_ITERATIONS if iterations is None else iterations
    lowest = iterate(times, block_inverses(memory, penalty), left, R, near, most)
    if lowest < -memory.rounding * memory.diagonal().max():
        raise NotLearnedError()
    memory.require_targets(left, B + R, Y, weights)
    memory.add(features, Y, -weights)
    W[:] = left


def solve_system(
    memory: Memory, penalty: float, inverse_blocks: Array, B: Array, tolerance: float, most: int
) -> tuple[Array, bool]:
    """X with (A + penalty I) X = B, so near that B^T X is right within ``tolerance`` of itself.

    Also whether ``most`` iterations were enough for that.
    """
    X, R = aligned(B.shape), B.copy()

    def near() -> bool:
        # B^T (A + lambda I)^-1 B exceeds B^T X by R^T (A + lambda I)^-1 R, if X is a Galerkin
        # solution, as here; and that is at most ||R||^2 / lambda.
        return bool(((R * R).sum(axis=0) <= tolerance * penalty * (B * X).sum(axis=0)).all())

    iterate(lambda V: memory.times(V) + penalty * V, inverse_blocks, X, R, near, most)
    return X, near()


def iterate(
    times: Callable[[Array], Array],
    inverse_blocks: Array,
    W: Array,
    R: Array,
    near: Callable[[], bool],
    most: int,
) -> float:
    """Conjugate gradients in place on W and its residual R, until ``near`` or ``most`` are done.

    Also where the matrix turns out not to be positive definite: returns the curvature found there,
    and infinity otherwise.
    """
    Z = _precondition(inverse_blocks, R)
    direction = Z.copy()
    rz = (R * Z).sum(axis=0)
    done = 0
    while done != most and not near():
        image = times(direction)
        curvature, length = (direction * image).sum(axis=0), (direction**2).sum(axis=0)
        if ((curvature <= 0) & (length > 0)).any():
            return float((curvature / _nonzero(length)).min())
        step = rz / _nonzero(curvature)
        W += step * direction
        R -= step * image
        Z = _precondition(inverse_blocks, R)
        before, rz = rz, (R * Z).sum(axis=0)
        direction *= rz / _nonzero(before)
        direction += Z
        done += 1
    return np.inf


def block_inverses(memory: Memory, penalty: float) -> Array:
    """The inverses of the diagonal blocks of A + penalty I."""
    blocks = memory.diagonal_blocks()
    ridge = penalty * np.eye(blocks.shape[1])
    for k, block in enumerate(blocks):  # one by one: all at once would need twice the memory
        blocks[k] = np.linalg.inv(block + ridge)
    return blocks


def _precondition(inverse_blocks: Array, R: Array) -> Array:
    count, size, _ = inverse_blocks.shape
    filled = np.zeros((count * size, R.shape[1]))
    filled[: len(R)] = R
    Z = inverse_blocks @ filled.reshape(count, size, -1)
    return np.asarray(Z.reshape(count * size, -1)[: len(R)])


def _nonzero(values: Array) -> Array:
    return np.where(values > 0, values, 1.0)
