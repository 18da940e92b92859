"""What is kept until the scaling of the inputs is settled, so that it can be learned once more."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from losse.typing import Array

GROWTH = 2
"""The scaling is learned anew whenever the rows have become this many times more."""


@dataclass(frozen=True)
class WarmUp:
    """The transitions so far, and when they were last used to learn the scaling.

    Attributes
    ----------
    size
        Rows after which the scaling stays as it is.
    scaled_at
        Rows from which the present scaling was learned.
    """

    size: int
    states: Array
    actions: npt.NDArray[np.generic]
    targets: Array
    scaled_at: int = 0

    def __len__(self) -> int:
        return len(self.states)

    def extended(self, states: Array, actions: npt.NDArray[np.generic], targets: Array) -> "WarmUp":
        """These rows and more."""
        return WarmUp(
            self.size,
            np.concatenate([self.states, states]),
            np.concatenate([self.actions, actions]),
            np.concatenate([self.targets, targets]),
            self.scaled_at,
        )

    @property
    def complete(self) -> bool:
        """Whether the scaling can be settled."""
        return len(self) >= self.size

    @property
    def due(self) -> bool:
        """Whether the scaling is to be learned anew."""
        return self.complete or len(self) >= GROWTH * self.scaled_at
