"""What an encoder hands to the regression: the features of a batch of rows.

Sparse features list the active entries of each row, the same number in every row; dense ones
are a plain matrix, in which every entry counts as active.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from losse._kernels.predict import weighted_rows

Array = npt.NDArray[np.float64]


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
        """out = Phi W, for W and out with rows padded to octets."""
        weighted_rows(self.indices, self.values, W, out)


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


Features = SparseFeatures | DenseFeatures
