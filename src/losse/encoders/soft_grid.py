"""`SoftGridEncoder`, the base of the soft-binning encoders: grids, and affine terms beside them."""

from numbers import Real

import numpy as np

from losse._kernels.encode import soft_bins
from losse._kernels.predict import interpolate
from losse.encoders.features import SparseFeatures
from losse.encoders.grid import GridEncoder
from losse.typing import Array


class SoftGridEncoder(GridEncoder):
    """The 2^rho edges around an input in every grid; with ``linear``, also a one and the input."""

    linear: bool | float

    def check_parameters(self) -> None:
        if not isinstance(self.linear, bool | np.bool_ | Real):
            raise TypeError(f"linear={self.linear!r} must be True, False or a number above 0.")
        if not 0 <= self.linear < np.inf:
            raise ValueError(f"linear={self.linear!r} must be True, False or a number above 0.")
        super().check_parameters()

    @property
    def cells_per_grid(self) -> int:
        """Edges of a grid: (n_bins + 1) ** grid_dim."""
        return int((self.n_bins + 1) ** self.grid_dim)

    @property
    def n_terms(self) -> int:
        """Features beside the grids, active in every row: a one and the inputs, or none."""
        return self._width + 1 if self.linear and hasattr(self, "n_features_in_") else 0

    @property
    def dimension(self) -> int:
        """Number of features, D in the paper: those of the grids, then the affine terms."""
        return super().dimension + self.n_terms

    @property
    def n_active(self) -> int:
        """At most this many features of a row are not zero: n_grids * 2 ** grid_dim, and terms."""
        return int(self.n_grids * 2**self.grid_dim) + self.n_terms

    def encode(self, X: Array) -> SparseFeatures:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""
        rows, terms = self._seen(X)
        indices = np.empty((len(X), self.n_active), dtype=np.int32)
        values = np.empty((len(X), self.n_active))
        grids = (self.n_grids, self.n_bins, self.grid_dim)
        soft_bins(rows, *self._input_map, *grids, indices, values)
        if terms is not None:
            count = terms.shape[1]
            indices[:, -count:] = np.arange(self.dimension - count, self.dimension)
            values[:, -count:] = terms
        return SparseFeatures(indices, values, self.dimension)

    def times(self, X: Array, W: Array, out: Array, columns: int | None = None) -> None:
        if self.grid_dim != 2:
            super().times(X, W, out)
            return
        rows, terms = self._seen(X)
        columns = columns or W.shape[1]
        interpolate(rows, *self._input_map, self.n_grids, self.n_bins, W, columns, out)
        if terms is not None:
            out += terms @ W[-terms.shape[1] :]

    def _seen(self, X: Array) -> tuple[Array, Array | None]:
        """What the grids see of the inputs, before the input map; and the affine terms."""
        return X, float(self.linear) * with_one(self._scaled(X)) if self.linear else None


def with_one(rows: Array) -> Array:
    """A column of ones before the others."""
    out = np.empty((len(rows), rows.shape[1] + 1))
    out[:, 0] = 1.0
    out[:, 1:] = rows
    return out
