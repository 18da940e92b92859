"""The two memories of the paper, A = sum phi phi^T and B = sum phi y^T.

Sums can be added to, taken from and added up: learning, unlearning and merging are one
operation each.
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from losse._kernels.accumulate import add_square
from losse._kernels.simd import aligned, padded
from losse.encoders import Features, SparseFeatures
from losse.storage.state import State, StateReader
from losse.typing import Array

ROUNDING = 1e-9
"""Share of a sum that rounding may have changed, with a wide margin (1e-4 for floats)."""


class NotLearnedError(ValueError):
    """Samples are to be unlearned that were not learned."""

    def __init__(self) -> None:
        super().__init__(
            "X, y cannot be unlearned: the model has not learned all of these rows, or with other "
            "targets or a smaller sample_weight. Pass only rows that were learned, each once, with "
            "the weights (and, under a discount, the age) that they have."
        )


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
        self.n_outputs = n_outputs
        self.B = aligned((dimension, padded(n_outputs)))
        self.total = 0.0
        self.squares = np.zeros(padded(n_outputs))

    def add(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch in, or out by negative weights. ``Y`` has padded rows, like B."""
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

    def absorb(self, other: "Memory", factor: float) -> None:
        """Add the sums of another memory of the same layout, times ``factor``."""
        for mine, theirs in zip(self.A, other.A, strict=True):  # a row or block at a time
            mine += (factor * theirs).astype(mine.dtype, copy=False)
        self._absorb_targets(other, factor)

    def _absorb_targets(self, other: "Memory", factor: float) -> None:
        self.B += factor * other.B
        self.squares += factor * other.squares
        self.total += factor * other.total

    def clear(self) -> None:
        """Forget everything."""
        for part in (self.A, self.B, self.squares):
            part[...] = 0.0
        self.total = 0.0

    def require(self, features: Features, Y: Array, weights: Array) -> None:
        """Raise `ValueError` if these samples cannot be part of the sums."""
        square = features.squared()
        diagonal = aligned((self.dimension, padded(1)))
        column = aligned((len(features), padded(1)))
        column[:, 0] = 1.0
        square.add_transposed(column, weights, diagonal)
        slack = self.rounding
        known = self.diagonal()
        if (
            weights.sum() > self.total * (1 + slack)
            or (diagonal[:, 0] > known + slack * known.max()).any()
            or (weights @ (Y * Y) > self.squares * (1 + slack)).any()
        ):
            raise NotLearnedError()

    def require_targets(self, W: Array, right: Array, Y: Array, weights: Array) -> None:
        """Raise `NotLearnedError` if W would have less than no error once these targets are gone.

        ``right`` is (A + lambda I) W + 2 R without them, with R the residual: B, for the leader.
        """
        left = self.squares - weights @ (Y * Y) - (W * right).sum(axis=0)
        if (left < -1e3 * self.rounding * self.squares).any():
            raise NotLearnedError()

    @property
    def rounding(self) -> float:
        """Share of a sum that rounding may have changed."""
        return ROUNDING if self.A.dtype == np.float64 else 1e5 * ROUNDING

    def squared_errors(self, W: Array) -> Array:
        """sum w (y - W^T phi)^2 per output."""
        errors = self.squares - (W * (2 * self.B - self.times(W))).sum(axis=0)
        return np.maximum(errors, 1e-14 * self.squares)  # what rounding leaves of a perfect fit

    def state(self) -> State:
        """What a checkpoint keeps."""
        return {"A": self.A, "B": self.B, "squares": self.squares, "total": self.total}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        saved.array("A", out=self.A)
        saved.array("B", out=self.B)
        saved.array("squares", out=self.squares)
        self.total = saved.number("total", at_least=0.0)

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of A."""

    @abstractmethod
    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T."""

    @abstractmethod
    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""

    @abstractmethod
    def square(self) -> Array:
        """A as a new full square of doubles."""

    @property
    @abstractmethod
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""

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

    def diagonal(self) -> Array:
        """The diagonal of A."""
        return np.array(self.A.diagonal(), dtype=np.float64)

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""
        return np.asarray(self.A @ W.astype(self.A.dtype, copy=False), dtype=np.float64)

    def square(self) -> Array:
        """A as a new full square of doubles."""
        return np.array(self.A, dtype=np.float64)

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""
        size = min(128, self.dimension)
        return -(-self.dimension // size), size, size

    def diagonal_blocks(self) -> Array:
        """Slices of 128 along the diagonal; the last one is filled up with the identity."""
        count, size, _ = self.block_shape
        blocks = np.tile(np.eye(size), (count, 1, 1))
        for k in range(count):
            part = self.A[k * size : (k + 1) * size, k * size : (k + 1) * size]
            blocks[k, : len(part), : len(part)] = part
        return blocks
