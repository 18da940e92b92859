"""What an encoder hands to the regression: the features of a batch of rows.

Sparse features list the active entries of each row, the same number in every row; dense ones
are a plain matrix, in which every entry counts as active.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from losse._kernels.accumulate import add_targets
from losse._kernels.predict import weighted_rows
from losse._kernels.simd import aligned, padded
from losse.typing import Array

# Rows that `gram` spreads out at once: few enough to stay in cache at 36,300 features.
_GRAM_COLUMNS = 32


@dataclass(frozen=True)
class SparseFeatures:
    """Rows with ``indices.shape[1]`` active entries each, out of ``dimension``."""

    indices: npt.NDArray[np.int32]
    values: Array
    dimension: int

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> "SparseFeatures":
        return SparseFeatures(self.indices[rows], self.values[rows], self.dimension)

    def matrix(self) -> csr_array:
        """The same features as a SciPy matrix."""
        n, active = self.indices.shape
        starts = np.arange(0, n * active + 1, active)
        entries = (self.values.ravel(), self.indices.ravel(), starts)
        return csr_array(entries, shape=(n, self.dimension))

    def times(self, W: Array, out: Array) -> None:
        """out = Phi W, for W and out with rows padded to whole lines."""
        weighted_rows(self.indices, self.values, W, out)

    def add_transposed(self, Y: Array, weights: Array, out: Array) -> None:
        """out += Phi^T Y, each row with its weight."""
        add_targets(out, self.indices, self.values, weights, Y)

    def gram(self, other: "SparseFeatures") -> Array:
        """Phi Phi'^T: inner products of these rows with those of ``other``."""
        products = np.empty((len(self), len(other)))
        for start in range(0, len(other), _GRAM_COLUMNS):
            part = other[start : start + _GRAM_COLUMNS]
            columns = aligned((self.dimension, padded(len(part))))
            columns[part.indices, np.arange(len(part))[:, None]] = part.values
            out = aligned((len(self), columns.shape[1]))
            self.times(columns, out)
            products[:, start : start + len(part)] = out[:, : len(part)]
        return products

    def scaled(self, factors: Array) -> "SparseFeatures":
        """Each row times its factor."""
        return SparseFeatures(self.indices, self.values * factors[:, None], self.dimension)

    def squared(self) -> "SparseFeatures":
        """Each entry squared."""
        return SparseFeatures(self.indices, self.values**2, self.dimension)


@dataclass(frozen=True)
class DenseFeatures:
    """Rows whose entries are all active."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> "DenseFeatures":
        return DenseFeatures(self.values[rows])

    @property
    def dimension(self) -> int:
        """Number of features, D in the paper."""
        return int(self.values.shape[1])

    def matrix(self) -> Array:
        """The features as an array."""
        return self.values

    def times(self, W: Array, out: Array) -> None:
        """out = Phi W."""
        np.matmul(self.values, W, out=out)

    def add_transposed(self, Y: Array, weights: Array, out: Array) -> None:
        """out += Phi^T Y, each row with its weight."""
        out += (self.values * weights[:, None]).T @ Y

    def gram(self, other: "DenseFeatures") -> Array:
        """Phi Phi'^T: inner products of these rows with those of ``other``."""
        return np.asarray(self.values @ other.values.T)

    def scaled(self, factors: Array) -> "DenseFeatures":
        """Each row times its factor."""
        return DenseFeatures(self.values * factors[:, None])

    def squared(self) -> "DenseFeatures":
        """Each entry squared."""
        return DenseFeatures(self.values**2)


Features = SparseFeatures | DenseFeatures
