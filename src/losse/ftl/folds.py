"""Cross-validation of the ridge, while rows are few.

Of few rows, those held out at the end say little: which ridge they favour is a matter of luck. So
every row is held out once. Folds are stretches of the stream, since neighbours are often alike, and
each has an encoder of its own, which has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from losse.encoders import Encoder
from losse.ftl.kept_rows import Rows
from losse.ftl.leader import Leader
from losse.ftl.settings import Settings
from losse.ftl.targets import new_targets

FOLDS = 4
LEAST_ROWS, MOST_ROWS = 8, 1000
"""Rows of which a ridge is cross-validated."""
RIDGES = tuple(10.0 ** (power / 2) for power in range(-10, 7))


def cross_validated_ridge(
    settings: Settings, rows: Rows, build: Callable[[Encoder, Rows], Encoder]
) -> float | None:
    """The ridge with the least error on rows left out, or None if it is not for these to say.

    ``build`` makes an encoder of the kind of another for some rows.
    """
    n = len(rows)
    if settings.ridge != "auto" or not LEAST_ROWS <= n <= MOST_ROWS:
        return None
    errors = np.zeros((len(RIDGES), rows.Y.shape[1]))
    bounds = np.linspace(0, n, FOLDS + 1).astype(int)
    for first, last in pairwise(bounds):
        others = rows[:first] + rows[last:]
        leader = Leader(settings, build(settings.encoder, others), new_targets(settings, others))
        leader.learn_untested(others)
        errors += leader.errors_of_ridges(RIDGES, rows[first:last])
    mean = np.average(rows.Y, axis=0, weights=rows.weights)
    spread = rows.weights @ (rows.Y - mean) ** 2
    varies = spread > 0
    shares = (errors[:, varies] / spread[varies]).sum(axis=1)
    return RIDGES[int(shares.argmin())] if varies.any() else None
