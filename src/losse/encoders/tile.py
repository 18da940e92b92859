"""Random tile coding: random projection, then plain binning."""

import numpy as np

from losse._kernels.encode import hard_bins
from losse.encoders.features import SparseFeatures
from losse.encoders.grid import GridEncoder
from losse.typing import Array


class TileEncoder(GridEncoder):
    r"""Random tile coding, the binary relative of `LosseEncoder` (section 4.1).

    The same random grids, but an input switches on only the one tile that holds it in each, with
    value one: :math:`\kappa` of the :math:`D = \kappa \lambda^\rho` features.

    Parameters
    ----------
    n_grids, n_bins, grid_dim, scaling, seed
        As in `LosseEncoder`.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import TileEncoder
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> phi = TileEncoder(n_grids=5, n_bins=10, grid_dim=2).fit_transform(X)
    >>> phi.shape, int(phi[[0]].count_nonzero()), float(phi.max())
    ((100, 500), 5, 1.0)

    References
    ----------
    Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, section 9.5.4.
    """

    @property
    def cells_per_grid(self) -> int:
        """Tiles of a grid: n_bins ** grid_dim."""
        return int(self.n_bins**self.grid_dim)

    @property
    def n_active(self) -> int:
        """Features of a row that are not zero: one per grid."""
        return int(self.n_grids)

    def encode(self, X: Array) -> SparseFeatures:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""
        indices = np.empty((len(X), self.n_grids), dtype=np.int32)
        grids = (self.n_grids, self.n_bins, self.grid_dim)
        hard_bins(X, *self._input_map, *grids, indices)
        return SparseFeatures(indices, np.ones(indices.shape), self.dimension)
