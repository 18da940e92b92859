"""Algorithm 1 of the paper: solve for all weights, whenever data arrive."""

from losse.encoders.features import Features
from losse.ftl.solvers.base import Solver
from losse.typing import Array


class DenseSolver(Solver):
    """W = (A + lambda I)^-1 B by a Cholesky factorisation, D^3 / 3 operations per batch."""

    approximate = False

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch into the memories and solve for all weights."""
        self.memory.add(features, Y, weights)
        self.solve()
        self._tell()

    def _unlearn(self, features: Features, Y: Array, weights: Array, penalty: float) -> None:
        super()._unlearn(features, Y, weights, penalty)
        self._tell()

    def refresh(self) -> None:
        """Do nothing: only the weights derive from the memories."""
