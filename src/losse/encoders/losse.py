"""Locality sensitive sparse encoding: random projection, then soft binning."""

import numpy as np

from losse.checks import check_count
from losse.encoders.base import ScalingChoice
from losse.encoders.directions import few_inputs
from losse.encoders.soft_grid import SoftGridEncoder
from losse.typing import Array


class LosseEncoder(SoftGridEncoder):
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
    inputs_per_axis
        How many inputs an axis mixes, chosen at random; None for all, as in the paper. Two or so
        follow most targets of ten or more inputs better.
    linear
        Whether a one and the scaled inputs themselves stand beside the grids: n_features + 1 more
        features, always active. The grids are then left with what is not linear. A number
        multiplies these features, so that a ridge weighs on them the less, by its square.
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

    def __init__(
        self,
        n_grids: int = 30,
        n_bins: int = 10,
        grid_dim: int = 2,
        *,
        inputs_per_axis: int | None = None,
        linear: bool | float = False,
        scaling: ScalingChoice = "standard",
        seed: int = 0,
    ) -> None:
        super().__init__(n_grids, n_bins, grid_dim, scaling=scaling, seed=seed)
        self.inputs_per_axis = inputs_per_axis
        self.linear = linear

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.inputs_per_axis is not None:
            check_count("inputs_per_axis", self.inputs_per_axis)

    def _draw(self, rng: np.random.Generator, n_features: int) -> Array:
        if self.inputs_per_axis is None or self.inputs_per_axis >= n_features:
            return super()._draw(rng, n_features)
        return few_inputs(rng, n_features, (self.n_grids, self.grid_dim), self.inputs_per_axis)
