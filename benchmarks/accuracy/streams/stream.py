"""A stream: rows in the order in which they are learned, and others to be tested on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from losse.scaling import standard
from losse.typing import Array

CUTS = 2  # 4 regions


class Stream(NamedTuple):
    """Rows to learn, in this order, and rows to predict.

    No episode has rows in both.  Only a sequence of tasks has more than one task.  A table whose
    rows have an order has no rows to predict.
    """

    X: Array
    Y: Array
    X_test: Array
    Y_test: Array
    task: NDArray[np.int64]
    task_test: NDArray[np.int64]

    @property
    def n_tasks(self) -> int:
        """Number of tasks that follow each other."""
        return int(self.task.max()) + 1


def in_sequence(stream: Stream, cuts: int = CUTS) -> Stream:
    """The same rows as a sequence of tasks, sorted by regions of the input space.

    Regions are cut as in a k-d tree: at the median of the direction in which the rows spread most,
    and each half again.  So they are of equal size, do not overlap, and each is visited once.
    Within a region rows keep their order.  The test rows have the regions they are in.
    """
    scaling = standard(stream.X)
    task, task_test = _regions(scaling.apply(stream.X), scaling.apply(stream.X_test), cuts)
    order = np.argsort(task, kind="stable")
    return stream._replace(
        X=stream.X[order], Y=stream.Y[order], task=task[order], task_test=task_test
    )


def _regions(train: Array, test: Array, cuts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers = np.zeros(len(train), np.int64), np.zeros(len(test), np.int64)
    if cuts == 0:
        return numbers
    direction = np.linalg.eigh(np.cov(train, rowvar=False))[1][:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])  # whatever LAPACK returns
    middle = np.median(train @ direction)
    above, above_test = train @ direction > middle, test @ direction > middle
    for side in (False, True):
        here, here_test = above == side, above_test == side
        parts = _regions(train[here], test[here_test], cuts - 1)
        for number, part, where in zip(numbers, parts, (here, here_test), strict=True):
            number[where] = part + side * 2 ** (cuts - 1)
    return numbers
