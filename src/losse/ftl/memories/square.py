"""`SquareMemory`: A as a full square, for models of moderate size."""

import numpy as np
import numpy.typing as npt

from losse.encoders.features import Features
from losse.ftl.memories.base import SCATTERED, Memory
from losse.typing import Array
from losse.work import UNIT, Work, blocks

LEAST_ROWS, MOST_ROWS = 64, 512
"""Rows that enter A together as a matrix product."""

_ROWS = 256
"""Rows of A that are changed to double precision at once."""


class SquareMemory(Memory):
    """A as a full square, which is fastest to read row by row."""

    def __init__(self, dimension: int, n_outputs: int, dtype: npt.DTypeLike) -> None:
        super().__init__(dimension, n_outputs)
        self.A = np.zeros((dimension, dimension), dtype)

    def add_products(self, features: Features, weights: Array) -> None:
        """A += sum of w phi phi^T.

        Roots of the weights go into the features: A stays symmetric to the last bit.
        """
        if (abs(weights) != 1.0).any():
            features, weights = features.scaled(np.sqrt(abs(weights))), np.sign(weights)
        features.add_products(weights, self.A)

    def _adding_products(self, features: Features, weights: Array, scattered: bool) -> Work[None]:
        n, D = len(features), self.dimension
        if scattered or n < LEAST_ROWS or SCATTERED * features.values.shape[1] ** 2 < D**2:
            yield from super()._adding_products(features, weights, scattered)
            return
        for part in blocks(n, UNIT / MOST_ROWS):
            rows = features[part].scaled(np.sqrt(weights[part])).dense().astype(self.A.dtype)
            for band in blocks(D, 2 * len(rows) * D):
                upper = rows[:, band].T @ rows[:, band.start :]
                self.A[band, band.start :] += upper
                self.A[band.stop :, band] = self.A[band, band.stop :].T
                yield 2.0 * len(rows) * upper.size

    def diagonal(self) -> Array:
        """The diagonal of A."""
        return np.array(self.A.diagonal(), dtype=np.float64)

    def times(self, W: Array) -> Array:
        """A W, for W with padded rows."""
        return np.asarray(self.A @ W.astype(self.A.dtype, copy=False), dtype=np.float64)

    def residual(self, W: Array, penalty: float) -> Array:
        """B - (A + penalty I) W, in double precision."""
        out = self.B - penalty * W
        for start in range(0, self.dimension, _ROWS):  # a copy of all of A would be large
            rows = slice(start, start + _ROWS)
            out[rows] -= self.A[rows].astype(np.float64, copy=False) @ W
        return out

    def rows_times(self, cells: npt.NDArray[np.int32], W: Array) -> Array:
        """Some rows of A, times W with padded rows."""
        return np.asarray(self.A[cells] @ W, dtype=np.float64)

    def block(self, cells: npt.NDArray[np.int32]) -> Array:
        """A_ss for some cells s."""
        return np.array(self.A[np.ix_(cells, cells)], dtype=np.float64)

    def square(self) -> Array:
        """A as a new full square of doubles."""
        return np.array(self.A, dtype=np.float64)

    def put_square(self, out: Array) -> None:
        """Write A as a full square of doubles."""
        out[:] = self.A

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
