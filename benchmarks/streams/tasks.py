"""How does a stream become a sequence of tasks?  Its rows are sorted by regions of the input space.

Regions are cut as in a k-d tree: at the median of the direction in which the rows spread most, and
each half again.  So they are of equal size, do not overlap, and each is visited once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams.stream import Array, Stream

CUTS = 2  # 4 regions


def in_sequence(stream: Stream, cuts: int = CUTS) -> Stream:
    """The same rows, one region after the other; the test rows with the regions they are in.

    Within a region rows keep their order.
    """
    centre, spread = stream.X.mean(axis=0), stream.X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    train, test = ((rows - centre) / spread for rows in (stream.X, stream.X_test))
    task, task_test = _regions(train, test, cuts)
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
