"""Cross-validation of the ridge, while rows are few.

Of few rows, those held out at the end say little: which ridge they favour is a matter of luck. So
every row is held out once. Folds are stretches of the stream, since neighbours are often alike, and
each has an encoder of its own, which has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrs

from losse.encoders import Encoder
from losse.ftl.kept_rows import Rows
from losse.ftl.solvers.base import ridge_cholesky
from losse.typing import Array
from losse.work import Work

LEAST_ROWS, MOST_ROWS = 8, 1000
"""Rows of which a ridge is cross-validated."""
FOLDS, MORE_FOLDS, FEW_ROWS = 4, 12, 150
"""Folds, and those of so few rows that a quarter fewer want another ridge."""
RIDGES = 10.0 ** np.arange(-5, 3.5, 0.5)


def suit(n: int) -> bool:
    """Whether so many rows are few, but enough to tell one ridge from another."""
    return LEAST_ROWS <= n <= MOST_ROWS


def best_ridge(
    rows: Rows, centred: bool, encoding: Callable[[Rows], Work[Encoder]]
) -> Work[float | None]:
    """The ridge with the least error on rows left out; None if the targets do not vary.

    ``encoding`` makes an encoder for some rows.
    """
    errors = np.zeros((len(RIDGES), rows.Y.shape[1]))
    folds = min(MORE_FOLDS, len(rows)) if len(rows) <= FEW_ROWS else FOLDS
    bounds = np.linspace(0, len(rows), folds + 1).astype(int).tolist()
    for first, last in pairwise(bounds):
        others = rows[:first] + rows[last:]
        encoder = yield from encoding(others)
        errors += yield from _errors(encoder, others, rows[first:last], centred)
    mean = np.average(rows.Y, axis=0, weights=rows.weights)
    spread = rows.weights @ (rows.Y - mean) ** 2
    varies = spread > 0
    if not varies.any():
        return None
    return float(RIDGES[(errors[:, varies] / spread[varies]).sum(axis=1).argmin()])


def _errors(encoder: Encoder, rows: Rows, left_out: Rows, centred: bool) -> Work[Array]:
    """Sum of w (y - prediction)^2 of rows left out, by the fits of others, (ridges, outputs)."""
    root = np.sqrt(rows.weights)
    mean = np.average(rows.Y, axis=0, weights=rows.weights) if centred else 0.0
    features = encoder.encode(rows.X).scaled(root)
    gram = features.gram(features)  # as in sample space
    across = features.gram(encoder.encode(left_out.X)).T
    known = root[:, None] * (rows.Y - mean)
    yield (gram.size + across.size) * float(encoder.n_active)
    errors = np.empty((len(RIDGES), rows.Y.shape[1]))
    for k, penalty in enumerate(RIDGES * rows.weights.sum()):
        factor, _ = ridge_cholesky(gram.copy(), penalty)
        predictions = across @ dpotrs(factor, known, lower=1)[0] + mean
        errors[k] = left_out.weights @ (left_out.Y - predictions) ** 2
        yield float(len(rows)) ** 3
    return errors
