"""`Memory`: the sums A = sum phi phi^T and B = sum phi y^T of the paper, in any layout.

Sums can be added to, taken from and added up: learning, unlearning and merging are one
operation each.

Rows of B are padded to whole cache lines, for the kernels. Solvers, which work on B, know of this;
nothing above them does, and checkpoints are without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, blocks, finished

if TYPE_CHECKING:
    from losse.ftl.targets import Change

SQUARE_LIMIT = 8192
"""Features up to which D x D arrays are affordable: half a gigabyte of doubles each."""
ROUNDING = 1e-9
"""Share of a sum that rounding may have changed, with a wide margin (1e-4 for floats)."""

SCATTERED = 100.0
"""Operations of a matrix product in the time that one entry of A takes to be added to."""


EPSILON = {"float64": 2.0**-51, "float32": 2.0**-22}
"""Rounding of an entry of A, which many rows have made, by its precision."""


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
    dimension, n_outputs
        D and S in the paper.
    A
        Sum of w phi phi^T, in the layout of the subclass.
    B
        Sum of w phi y^T, (D, S) with padded rows.
    total
        Sum of w: the number of samples, if none has a weight.
    sums, squares
        Sums of w y and w y^2 per output, padded like B. Of the former, which only centred targets
        need, checkpoints are kept by `losse.ftl.targets`.
    """

    A: npt.NDArray[np.floating]

    def __init__(self, dimension: int, n_outputs: int) -> None:
        self.dimension = dimension
        self.n_outputs = n_outputs
        self.B = aligned((dimension, padded(n_outputs)))
        self.total = 0.0
        self.sums = np.zeros(padded(n_outputs))
        self.squares = np.zeros(padded(n_outputs))
        self._error = 0.0  # of an entry of A whose features are one, by rounding

    def padded(self, Y: Array) -> Array:
        """Targets (n, S) with rows padded like those of B."""
        out = aligned((len(Y), self.B.shape[1]))
        out[:, : self.n_outputs] = Y
        return out

    def add(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch in, or out by negative weights. ``Y`` has padded rows."""
        self.add_products(features, weights)
        self._add_targets(features, Y, weights)

    def add_soon(self, features: Features, Y: Array, weights: Array, *, hold: bool = False) -> None:
        """What `add` does for a few rows of positive weights, which may enter A later.

        For solvers that seldom look at A. ``hold`` asks that A stay as it is for now.
        """
        self.add_products_soon(features, weights, hold)
        self._add_targets(features, Y, weights)

    def adding(
        self, features: Features, Y: Array, weights: Array, *, scattered: bool
    ) -> Work[None]:
        """What `add` does for many samples, as work in units.

        Unless it is to be ``scattered`` as there, sums may be rounded in another order.
        """
        yield from self._adding_products(features, weights, scattered)
        self._add_targets(features, Y, weights)

    def _adding_products(self, features: Features, weights: Array, scattered: bool) -> Work[None]:
        active = features.values.shape[1]
        cost = (2.2 if self.large else 0.4) * SCATTERED * active**2
        for part in blocks(len(features), cost):
            self.add_products(features[part], weights[part])
            yield (part.stop - part.start) * cost

    def _add_targets(self, features: Features, Y: Array, weights: Array) -> None:
        features.add_transposed(Y, weights, self.B)
        self._error = self._rounded()
        self.total += float(weights.sum())
        self.sums += weights @ Y
        self.squares += weights @ (Y * Y)

    def objective(self, W: Array, residual: Array, penalty: float) -> float:
        """sum w ||y - W^T phi||^2 + penalty ||W||^2, given residual = B - (A + penalty I) W.

        Never below its second part, whatever rounding does to the first.
        """
        value = self.squares.sum() - np.vdot(W, self.B) - np.vdot(W, residual)
        return float(max(value, penalty * np.vdot(W, W)))

    def residual(self, W: Array, penalty: float) -> Array:
        """B - (A + penalty I) W."""
        return finished(self.residuals(W, penalty))

    def residuals(self, W: Array, penalty: float) -> Work[Array]:
        """What `residual` returns, as work in units."""
        yield 0.0
        return np.asarray(self.B - self.times(W) - penalty * W)

    def doubt(self, W: Array, inverse: Array | float) -> float:
        """Excess of the objective that the rounding of A may cause.

        Each entry of A is off by some `EPSILON` of the roots of its row's and its column's
        diagonal, times a random number. The gradient is then off by E W, and the objective by the
        square of that in the metric of (A + lambda I)^-1, whose diagonal is ``inverse``.
        """
        diagonal = self.diagonal()
        error = min(1.0, self._rounded() / self.total)
        return error**2 * float(diagonal @ (W * W).sum(axis=1)) * float((diagonal * inverse).sum())

    def _rounded(self) -> float:
        """Rounding of the sums as they are, and as they were: it stays when rows go."""
        return max(self._error, EPSILON[self.A.dtype.name] * self.total)

    def scale(self, factor: float) -> None:
        """Multiply the weight of every sample by ``factor``."""
        for part in (self.A, self.B, self.sums, self.squares):
            part *= factor
        self.total *= factor
        self._error *= factor

    def absorb(self, other: Memory, factor: float, change: Change | None) -> None:
        """Add the sums of another memory of the same layout, times ``factor``.

        ``change`` is that of the other's units to these, if they differ.
        """
        for mine, theirs in zip(self.A, other.A, strict=True):  # a row or block at a time
            mine += (factor * theirs).astype(mine.dtype, copy=False)
        self._error = self._rounded() + factor * other._rounded()
        B, sums, squares, total = other.B, other.sums, other.squares, other.total
        if change is not None:
            a, b = change.factor, change.offset
            B = change.columns(B)
            squares = a * a * squares + 2 * a * b * sums + b * b * total
            sums = a * sums + b * total
        self.B += factor * B
        self.sums += factor * sums
        self.squares += factor * squares
        self.total += factor * total

    def clear(self) -> None:
        """Forget everything."""
        for part in (self.A, self.B, self.sums, self.squares):
            part[...] = 0.0
        self.total = self._error = 0.0

    def require(self, features: Features, Y: Array, weights: Array) -> None:
        """Raise `NotLearnedError` if these samples cannot be part of the sums."""
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
    def large(self) -> bool:
        """Whether a D x D array beside A would be too much."""
        return self.dimension > SQUARE_LIMIT

    @property
    def rounding(self) -> float:
        """Share of a sum that rounding may have changed, also in memories that were absorbed."""
        own = ROUNDING if self.A.dtype == np.float64 else 1e5 * ROUNDING
        if self.total <= 0.0:
            return own
        return max(own, 1e5 * ROUNDING * min(1.0, self._error / self.total / EPSILON["float32"]))

    def state(self) -> State:
        """Values for a checkpoint."""
        S = self.n_outputs
        own = {"A": self.A, "B": self.B[:, :S], "squares": self.squares[:S], "total": self.total}
        return own | {"error": self._error}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        saved.array("A", out=self.A)
        saved.columns("B", out=self.B, width=self.n_outputs)
        saved.columns("squares", out=self.squares, width=self.n_outputs)
        self.total = saved.number("total", at_least=0.0)
        self._error = saved.number("error", at_least=0.0, missing=0.0)

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of A."""

    @abstractmethod
    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T."""

    def add_products_soon(self, features: Features, weights: Array, hold: bool) -> None:
        """A += sum of w phi phi^T, now or later."""
        self.add_products(features, weights)

    def defers(self, features: Features) -> bool:
        """Whether such rows wait for others before they enter A."""
        return False

    @property
    def waiting(self) -> int:
        """Rows that have still to enter A."""
        return 0

    @abstractmethod
    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""

    @abstractmethod
    def rows_times(self, cells: npt.NDArray[np.int32], W: Array) -> Array:
        """Some rows of A, times W with padded rows."""

    @abstractmethod
    def block(self, cells: npt.NDArray[np.int32]) -> Array:
        """A_ss for some cells s, in ascending order."""

    @abstractmethod
    def square(self) -> Array:
        """A as a new full square of doubles."""

    def put_rows(self, rows: slice, waiting: int, out: Array) -> None:
        """Write some rows of A, from the diagonal on, with the first rows that wait."""
        D = self.dimension
        out[rows, rows.start : D] = self.square()[rows, rows.start :]

    @property
    @abstractmethod
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of `diagonal_blocks`."""

    @abstractmethod
    def diagonal_blocks(self) -> Array:
        """The blocks on A's diagonal, (number, size, size): one per grid, or slices of 128."""
