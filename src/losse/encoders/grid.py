"""`GridEncoder`, the base of the binning encoders: squashed projections that fall into grids."""

import numpy as np

from losse.checks import check_count
from losse.encoders.base import Encoder, ScalingChoice, truncated_normal
from losse.typing import Array


class GridEncoder(Encoder):
    """``n_grids`` (kappa) grids of ``grid_dim`` (rho) axes with ``n_bins`` (lambda) bins each."""

    def __init__(
        self,
        n_grids: int = 30,
        n_bins: int = 10,
        grid_dim: int = 2,
        *,
        scaling: ScalingChoice = "standard",
        seed: int = 0,
    ) -> None:
        self.n_grids = n_grids
        self.n_bins = n_bins
        self.grid_dim = grid_dim
        self.scaling = scaling
        self.seed = seed

    def check_parameters(self) -> None:
        super().check_parameters()
        for name in ("n_grids", "n_bins", "grid_dim"):
            check_count(name, getattr(self, name))
        # Powers of large numbers take for ever: see first whether they could be right at all.
        too_large = self.grid_dim > 31 or max(self.n_bins, self.n_grids) >= 2**31
        if too_large or self.dimension >= 2**31:
            raise ValueError(
                f"n_grids={self.n_grids}, n_bins={self.n_bins}, grid_dim={self.grid_dim} make more "
                "features than can be indexed (2 ** 31): lower one of them."
            )

    def _draw(self, rng: np.random.Generator, n_features: int) -> Array:
        shape = (n_features, self.n_grids, self.grid_dim)
        return truncated_normal(rng, shape) / np.sqrt(n_features)

    @property
    def cells_per_grid(self) -> int:
        """Features that one grid contributes."""
        raise NotImplementedError

    @property
    def n_terms(self) -> int:
        """Features beside the grids, active in every row; the last ones."""
        return 0

    @property
    def dimension(self) -> int:
        """Number of features, D in the paper."""
        return int(self.n_grids * self.cells_per_grid)

    @property
    def _projection_shape(self) -> tuple[int, ...]:
        return (self.n_grids, self.grid_dim)
