"""`FollowingPosterior`: what is kept follows the rows learned, when it is next asked for."""

import numpy as np

from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.posterior.base import Posterior
from losse.ftl.solvers.base import Solver
from losse.ftl.targets import Targets
from losse.typing import Array


class FollowingPosterior(Posterior):
    """A posterior with a lambda of its own, which keeps rows until it follows them."""

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        super().__init__(encoder, solver, targets)
        self._own_penalty = solver.penalty
        self._ahead: list[Features] = []  # rows that it has yet to follow

    @property
    def serves(self) -> bool:
        """Whether few rows wait: many are dearer to follow than to begin with."""
        return sum(map(len, self._ahead)) <= self._memory.dimension // 4

    def learned(self, features: Features, weights: Array) -> None:
        if self.serves:  # or else it is to be made anew
            self._ahead.append(features.scaled(np.sqrt(weights)))

    @property
    def _penalty(self) -> float:
        return self._own_penalty
