r"""`Intervals`: how far targets are from predictions, learned from errors for rows not yet learned.

The posterior (`losse.ftl.posterior`) takes errors as normal, of the variance
:math:`\sigma^2 (1 + h)`, where :math:`h = \phi^T (A + \lambda I)^{-1} \phi` is the leverage of a
row. Errors on real data have heavy tails, and they grow much faster with h: features that are
seldom active fit worst. Both are learned here, for each output, from the latest errors of
predictions that were made before their rows were learned:

.. math::

    \log |e| = \tfrac12 \log (1 + h) + \beta \log \frac{n h}{1 + h} + \gamma \log n + r,

with n rows learned then, for leverages fall with n even where errors stay: h / (1 + h), the
leverage of a row once it is learned itself, as 1 / n. The last slope follows errors that fall as a
model learns. Both are a least-squares fit, the first not below zero. An interval that is to hold a
share of the targets has that quantile of r. Predictions ahead of a stream that moves are worse than
those for rows like the ones learned so far, but the leverages of these rows are larger, too: so
errors are compared at the same leverage.

While errors are few, an interval is partly that of the posterior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from losse.storage.state import State, StateReader
from losse.typing import Array

ROWS = 2000
"""Latest errors that count, at most."""
NUMBERS = 1 << 20
"""With many outputs, fewer rows: as many numbers in all."""
FEWEST = 50
"""Errors that count even if another encoder made them."""
PRIOR = 10.0
"""Errors that the posterior stands for."""
SLOPE_PRIOR = 10.0
"""Sum of squared deviations of a logarithm that pulls its slope to zero."""
SMALLEST = 1e-3
"""Errors below this share of their root mean square say no more about the slope."""
TINY = 1e-200
"""Smallest weight."""
BEYOND = 10.0
"""Times the largest leverage known: the slope goes no further."""


class Errors(NamedTuple):
    """Errors of predictions for rows that were not learned then, (n, n_outputs)."""

    errors: Array
    leverages: Array
    """Leverages of the rows then, where a row weighs one; zero where they are not known."""
    weights: Array
    total: float
    """Rows that were learned then."""


class Intervals:
    """The latest errors, with the leverages of their rows before these were learned.

    Parameters
    ----------
    n_outputs
        Width of the targets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> leverages = rng.uniform(0.01, 0.1, size=2000)
    >>> errors = 50 * leverages[:, None] * rng.laplace(size=(2000, 1))
    >>> intervals = Intervals(1)
    >>> intervals.add(Errors(errors, leverages, np.ones(2000), total=5000))
    >>> intervals.half_widths(0.9, np.array([0.02, 0.08]), np.ones(1), 5000).round()  # 50 h ln 10
    array([[2.],
           [9.]])
    """

    def __init__(self, n_outputs: int) -> None:
        self._most = max(FEWEST, min(ROWS, NUMBERS // n_outputs))
        # Per row its weight, leverage (zero: not known), rows learned then, error of each output.
        self._ring = np.empty((0, 3 + n_outputs))
        self._added = 0
        self._fresh = 0  # rows since the encoder took over

    def add(self, latest: Errors) -> None:
        """Take in more errors."""
        n = len(latest.errors)
        first = self._added % self._most
        direct = first + n <= len(self._ring)  # else the ring has to grow, or to begin again
        rows = self._ring[first : first + n] if direct else np.empty((n, self._ring.shape[1]))
        rows[:, 0], rows[:, 1] = np.maximum(latest.weights, TINY), latest.leverages
        rows[:, 2], rows[:, 3:] = max(latest.total, TINY), latest.errors
        if direct:
            self._added += n
        else:
            self._append(rows)
        self._fresh += n

    def take_over(self, first: Errors | None) -> None:
        """Let another encoder predict from here on, which has made its first errors."""
        self._fresh = 0
        if first is not None:
            self.add(first)

    def begin_anew(self, first: Errors) -> None:
        """Forget all errors but these."""
        self._added = 0
        self.take_over(first)

    def absorb(self, other: Intervals) -> None:
        """Take in the errors of another model: of both, the latest count."""
        parts = self._latest, other._latest
        ages = np.concatenate([np.arange(len(part), 0, -1) for part in parts])
        rows = np.concatenate(parts)[np.argsort(-ages, kind="stable")]
        self._added = 0
        self._append(rows)
        self._fresh += other._fresh

    def half_widths(
        self,
        coverage: float,
        leverages: Array,
        noise: Array,
        total: float,
        discount: float = 1.0,
    ) -> Array:
        """Half the widths of intervals that hold a share of the targets, (rows, outputs).

        Parameters
        ----------
        coverage
            The share.
        leverages
            Of the rows to predict.
        noise
            Variance of each output by the posterior.
        total
            Rows learned.
        discount
            Factor by which an error counts less with each one that follows.
        """
        spread = np.sqrt(1.0 + leverages)[:, None]
        expected = spread * np.sqrt(noise) * norm.ppf((1.0 + coverage) / 2)
        rows = self._counting
        if len(rows) == 0:
            return np.asarray(expected)
        weights = rows[:, 0] * discount ** np.arange(len(rows) - 1.0, -1.0, -1.0)
        weights /= weights.max()
        n = float(weights.sum() ** 2 / (weights @ weights))
        weights *= n / weights.sum()
        errors = np.abs(rows[:, 3:])
        if rows[:, 1].all():
            errors /= np.sqrt(1.0 + rows[:, 1])[:, None]
            known = rows[:, 2] * _share(rows[:, 1])
            places = np.log(np.column_stack([known, rows[:, 2]]))
            centre = weights @ places / n
            slopes = _slopes(places - centre, errors, weights)
            errors *= np.exp((centre - places) @ slopes)
            asked = np.clip(total * _share(leverages), known.min(), BEYOND * known.max())
            most = min(max(total, TINY), rows[:, 2].max())  # merged models have more rows
            now = np.full(len(asked), most)
            spread = spread * np.exp((np.log(np.column_stack([asked, now])) - centre) @ slopes)
        learned = spread * _quantiles(errors, weights, coverage)
        return np.asarray((n * learned + PRIOR * expected) / (n + PRIOR))

    @property
    def _latest(self) -> Array:
        """All rows that are kept, in the order in which they came."""
        kept = min(self._added, self._most)
        return self._ring[np.arange(self._added - kept, self._added) % self._most]

    @property
    def _counting(self) -> Array:
        """Rows that count: of this encoder, and of known leverage if that is the rule."""
        rows = self._latest[-max(self._fresh, FEWEST) :]
        known = rows[:, 1] > 0
        if known.sum() >= min(FEWEST, max(1, len(rows) // 2)):
            return rows[known]
        rows[:, 1] = 0.0
        return rows

    def _append(self, rows: Array) -> None:
        rows = rows[-self._most :]
        last = self._added + len(rows)
        if len(self._ring) < min(last, self._most):
            size = min(max(last, 2 * len(self._ring)), self._most)
            self._ring = np.resize(self._ring, (size, self._ring.shape[1]))
        self._ring[np.arange(self._added, last) % self._most] = rows
        self._added = last

    def state(self) -> State:
        """Values for a checkpoint."""
        rows = self._latest
        return {"rows": len(rows), "fresh": self._fresh, "errors": rows}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        n = saved.count("rows", at_most=self._most)
        rows = saved.array("errors", (n, self._ring.shape[1]))
        if not (rows[:, [0, 2]] > 0).all() or not (rows[:, 1] >= 0).all():
            saved.refuse("errors have weights or numbers that are not above zero")
        self._append(rows)
        self._fresh = saved.count("fresh")


def _share(leverages: Array) -> Array:
    """Leverages of rows once they are learned themselves."""
    return leverages / (1.0 + leverages)


def _slopes(places: Array, errors: Array, weights: Array) -> Array:
    """How the logarithm of errors grows with places, whose means are zero; the first at least 0."""
    size = np.sqrt(weights @ errors**2 / weights.sum())
    logs = np.log(np.maximum(errors, SMALLEST * np.where(size > 0, size, 1.0)))
    weighted = (weights[:, None] * places).T
    squares = weighted @ places + SLOPE_PRIOR * np.eye(2)
    sums = weighted @ logs
    both = np.linalg.solve(squares, sums)
    second = np.stack([np.zeros(len(sums[1])), sums[1] / squares[1, 1]])
    return np.where(both[0] < 0, second, both)


def _quantiles(errors: Array, weights: Array, share: float) -> Array:
    """Size below which a share of the errors are, per column; weights sum to their number n.

    Of n errors, the k-th is that of k / (n + 1). Further out, errors count as normal.

    >>> _quantiles(np.arange(1.0, 100.0)[:, None], np.ones(99), 0.9)
    array([90.])
    """
    n = weights.sum()
    level = min(share, n / (n + 1.0))
    order = np.argsort(errors, axis=0)
    shares = np.cumsum(weights[order], axis=0) / (n + 1.0)
    found = [np.interp(level, shares[:, k], errors[order[:, k], k]) for k in range(errors.shape[1])]
    return np.array(found) * (norm.ppf((1.0 + share) / 2) / norm.ppf((1.0 + level) / 2))
