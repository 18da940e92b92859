"""What is a stream?  Rows in the order in which they are learned, and others to be tested on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Rows(NamedTuple):
    """Transitions: inputs are [observation, action], targets [next - observation, reward]."""

    X: Array
    Y: Array
    episode: NDArray[np.int64]
    """The number of the episode that each row belongs to."""

    def take(self, which: slice | NDArray[Any]) -> Rows:
        """Some of the rows."""
        return Rows(self.X[which], self.Y[which], self.episode[which])


class Stream(NamedTuple):
    """What is learned, in this order, and what is predicted.

    No episode has rows in both.  Only a sequence of tasks has more than one task.
    """

    X: Array
    Y: Array
    X_test: Array
    Y_test: Array
    task: NDArray[np.int64]
    task_test: NDArray[np.int64]

    @property
    def n_tasks(self) -> int:
        """How many tasks follow each other."""
        return int(self.task.max()) + 1
