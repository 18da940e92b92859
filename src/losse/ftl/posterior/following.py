"""`FollowingPosterior`: what is kept follows the rows learned, when it is next asked for."""

from collections.abc import Iterator

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

    def _waiting(self, together: int) -> Iterator[Features]:
        """Rows that it has yet to follow, some at a time; they count as followed then."""
        if not self._ahead:
            return
        rows, last = self._ahead[0].room(sum(map(len, self._ahead))), 0
        for part in self._ahead:
            rows.put(last, part)
            last += len(part)
        self._ahead.clear()
        yield from (rows[k : k + together] for k in range(0, last, together))

    @property
    def _penalty(self) -> float:
        return self._own_penalty
