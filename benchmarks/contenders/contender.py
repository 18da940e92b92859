"""What must a learner be able to do to compete?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Contender(Protocol):
    """Learns a stream in small batches and can be asked at any time."""

    def learn(self, X: Array, Y: Array) -> None:
        """Take in the next rows."""

    def refresh(self) -> None:
        """Before a checkpoint: those that keep all rows and fit them in one go do it now."""

    def predict(self, X: Array) -> Array:
        """Predict the targets of rows."""

    @property
    def nbytes(self) -> int:
        """Memory of everything it needs to go on learning, in bytes."""


@runtime_checkable
class Doubting(Protocol):
    """Says how sure it is."""

    def predict_std(self, X: Array) -> tuple[Array, Array]:
        """Predictions and their standard deviations."""
