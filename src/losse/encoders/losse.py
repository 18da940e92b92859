"""Locality sensitive sparse encoding: random projection, then soft binning."""

import numpy as np

from losse._kernels.encode import soft_bins
from losse._kernels.predict import interpolate
from losse.encoders.features import Array, SparseFeatures
from losse.encoders.grid import GridEncoder


class LosseEncoder(GridEncoder):
    r"""Locality sensitive sparse encoding (section 3.2 of the paper).

    An input is projected on random directions, squashed into (0, 1) and located in ``n_grids``
    grids of ``grid_dim`` axes with ``n_bins`` bins each. In every grid the
    :math:`2^\rho` edges around it are active, with the weights of multilinear
    interpolation. So at most :math:`\kappa 2^\rho` of the
    :math:`D = \kappa (\lambda + 1)^\rho` features are not zero (Remark 3.1), and similar
    inputs share them.

    Parameters
    ----------
    n_grids
        Number of grids, kappa.
    n_bins
        Bins along each axis of a grid, lambda.
    grid_dim
        Axes of a grid, rho.
    scaling
        ``None``: inputs are already within about [-3, 3]. ``"standard"``: subtract the mean and
        divide by the standard deviation of the data given to `fit`, clip to [-3, 3].
        ``(low, high)``: map these bounds (numbers or one per feature) to [-3, 3] and clip.
    seed
        Of the projection. The same seed gives the same encoder in every process.

    Attributes
    ----------
    projection_
        Directions, of shape (n_features, n_grids, grid_dim). May be replaced after `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import LosseEncoder
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> phi = LosseEncoder(n_grids=5, n_bins=10, grid_dim=2).fit_transform(X)
    >>> phi.shape
    (100, 605)
    >>> int(phi[[0]].count_nonzero())  # 5 grids of 2 axes: 5 * 2**2 active features
    20
    >>> bool(np.allclose(phi.sum(axis=1), 5))  # in each grid the weights sum to one
    True

    References
    ----------
    Liu, Du, Lee and Lin, "Locality Sensitive Sparse Encoding for Learning World Models Online",
    ICLR 2024.
    """

    @property
    def cells_per_grid(self) -> int:
        """Edges of a grid: (n_bins + 1) ** grid_dim."""
        return int((self.n_bins + 1) ** self.grid_dim)

    @property
    def n_active(self) -> int:
        """At most this many features of a row are not zero: n_grids * 2 ** grid_dim."""
        return int(self.n_grids * 2**self.grid_dim)

    def encode(self, X: Array) -> SparseFeatures:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""
        indices = np.empty((len(X), self.n_active), dtype=np.int32)
        values = np.empty((len(X), self.n_active))
        grids = (self.n_grids, self.n_bins, self.grid_dim)
        soft_bins(X, *self._input_map, *grids, indices, values)
        return SparseFeatures(indices, values, self.dimension)

    def times(self, X: Array, W: Array, out: Array) -> None:
        """out = Phi(X) W for checked rows; W and out have rows padded to whole cache lines."""
        if self.grid_dim == 2:
            interpolate(X, *self._input_map, self.n_grids, self.n_bins, W, out)
        else:
            super().times(X, W, out)
