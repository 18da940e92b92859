"""Algorithm 1 of the paper: solve for all weights, whenever data arrive."""

from losse.encoders import Features
from losse.ftl.solver import Solver
from losse.typing import Array


class DenseSolver(Solver):
    """W = (A + lambda I)^-1 B by a Cholesky factorisation, D^3 / 3 operations per batch."""

    def learn(self, features: Features, Y: Array, weights: Array) -> None:
        """Take a batch into the memories and solve for all weights."""
        self.memory.add(features, Y, weights)
        self.renew()

    def refresh(self) -> None:
        """Nothing is derived from the memories but the weights."""
