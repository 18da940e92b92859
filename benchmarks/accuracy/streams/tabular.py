"""Tables of `losse bench accuracy`: what scikit-learn and River ship, and some that are computed.

None of them needs a download.  Rows without an order are shuffled by the seed, and a fifth of them
is held out; rows that have an order keep it, and are tested by predictions ahead only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from benchmarks.accuracy.streams.stream import Stream
from losse.typing import Array

HELD_OUT = 5  # of the rows without an order, one in so many
Rows = tuple[Array, Array]


class Table(NamedTuple):
    """Rows of inputs and targets that can be made from a seed."""

    about: str
    rows: int
    inputs: int
    make: Callable[[int], Rows]
    in_order: bool = False
    """Whether the rows have an order that matters, such as time."""
    needs: tuple[str, ...] = ()
    """Packages beyond the core."""
    learned: int | None = None
    """Rows that are learned; all in an order, and four fifths of those without."""

    @property
    def n_learned(self) -> int:
        """Number of rows that are learned; the others are tested on."""
        return self.learned or n_learned(self.rows, self.in_order)

    def stream(self, seed: int) -> Stream:
        """Rows to learn and rows to test."""
        return as_stream(*self.make(seed), seed, self.n_learned, in_order=self.in_order)


def n_learned(rows: int, in_order: bool) -> int:
    """Number of rows that are learned if a fifth is held out of those without an order.

    >>> n_learned(11, in_order=False), n_learned(11, in_order=True)
    (9, 11)
    """
    return rows if in_order else rows - rows // HELD_OUT


def as_stream(X: Array, Y: Array, seed: int, learned: int, *, in_order: bool) -> Stream:
    """Rows as a stream, in their order or shuffled; those beyond the learned are tested on."""
    n = len(X)
    order = np.arange(n) if in_order else np.random.default_rng(seed).permutation(n)
    train, test = order[:learned], order[learned:]
    tasks = (np.zeros(len(rows), np.int64) for rows in (train, test))
    return Stream(X[train], Y[train], X[test], Y[test], *tasks)


def _column(X: Any, y: Any) -> Rows:
    return np.asarray(X, np.float64), np.asarray(y, np.float64).reshape(len(X), -1)


def _wine(seed: int) -> Rows:
    rows = datasets.load_wine().data
    return _column(rows[:, 1:], rows[:, 0])


def _friedman1(seed: int, n: int = 3000) -> Rows:
    return _column(*datasets.make_friedman1(n, noise=1.0, random_state=seed))


def _thresholds(seed: int, n: int = 6000) -> Rows:
    """Twelve steps, each where two inputs are on the right sides of thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 20))
    y = rng.normal(scale=0.1, size=n)
    for _ in range(12):
        (i, j), (a, b) = rng.choice(10, 2, replace=False), rng.uniform(-0.5, 0.5, size=2)
        y += rng.choice([-1, 1]) * ((X[:, i] > a) & (X[:, j] > b))
    return _column(X, y)


def _periodic(seed: int, n: int = 30_000) -> Rows:
    """Waves of one to four periods along each input, and along sums of two."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 8))
    waves = np.sin(np.pi * X * rng.uniform(1, 4, size=8) + rng.uniform(0, 6, size=8))
    pairs = np.sin(np.pi * (X + np.roll(X, 1, axis=1)) * rng.uniform(1, 2, size=8))
    return _column(X, waves.sum(axis=1) + pairs.sum(axis=1) + rng.normal(scale=0.1, size=n))


def _codes(seed: int, n: int = 3000) -> Rows:
    """Numbers of categories in no order, each with an effect and a slope of its own."""
    rng = np.random.default_rng(seed)
    sizes = (3, 6, 12, 24)
    codes = np.column_stack([rng.integers(size, size=n) for size in sizes])
    numbers = rng.normal(size=(n, 2))
    y = rng.normal(scale=0.1, size=n)
    for code, size in zip(codes.T, sizes, strict=True):
        y += rng.normal(size=size)[code]
    y += rng.normal(size=6)[codes[:, 1]] * numbers[:, 0] + numbers[:, 1]
    return _column(np.column_stack([codes, numbers]), y)


def _drift(seed: int, n: int = 6000) -> Rows:
    """Friedman's first function, whose inputs change places after each third."""
    rng = np.random.default_rng(seed)
    X, Y = _friedman1(seed, n)
    for third in np.array_split(np.arange(n), 3):
        X[third] = X[third][:, rng.permutation(10)]
    return X, Y


def _few_rows(seed: int, n: int = 1050) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return _column(X, X[:, 0] - X[:, 1] + 0.5 * X[:, 2] ** 2 + rng.normal(scale=0.1, size=n))


def _one_input(seed: int, n: int = 1000) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return _column(X, np.sin(2 * X[:, 0]) + (X[:, 0] > 1) + rng.normal(scale=0.1, size=n))


def _wide(seed: int, n: int = 1100) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 500)) @ np.diag(np.linspace(2, 0.1, 500))
    return _column(X, X[:, :10].sum(axis=1) + rng.normal(scale=0.5, size=n))


def _large_scale(seed: int, n: int = 1500) -> Rows:
    X, Y = _friedman1(seed, n)
    return X * 10.0 ** (6 - np.arange(10) / 2), 1e6 * Y


def _river(name: str) -> Callable[[int], Rows]:
    def make(seed: int) -> Rows:
        from river import datasets as shipped

        rows = list(getattr(shipped, name)())
        inputs = [[_as_numbers(value) for value in x.values()] for x, _ in rows]
        columns = [_as_columns(column) for column in zip(*inputs, strict=True)]
        targets = [list(y.values()) if isinstance(y, dict) else y for _, y in rows]
        return _column(np.hstack(columns), targets)

    return make


def _as_numbers(value: Any) -> Any:
    """A time as hours since 2000, hour of the day and weekday; all else as it is."""
    if not hasattr(value, "weekday"):
        return value
    local = value.replace(tzinfo=None)
    return [(local - type(local)(2000, 1, 1)).total_seconds() / 3600, local.hour, local.weekday()]


def _as_columns(column: Any) -> Array:
    """A column of numbers, or the codes of words in alphabetical order."""
    values = np.array(column)
    if values.dtype.kind == "U":
        values = np.unique(values, return_inverse=True)[1]
    return values.reshape(len(values), -1).astype(np.float64)


RIVER = ("river",)
TABLES = {
    "wine": Table("alcohol of wines, from 12 other analyses", 178, 12, _wine),
    "diabetes": Table(
        "progress of diabetes after a year", 442, 10,
        lambda seed: _column(*datasets.load_diabetes(return_X_y=True, scaled=False)),
    ),
    "digits": Table(
        "which digit an image of 8 x 8 pixels shows, as a number", 1797, 64,
        lambda seed: _column(*datasets.load_digits(return_X_y=True)),
    ),
    "friedman1": Table("Friedman's functions, with noise, in 10, 4 and 4 inputs", 3000, 10,
                       _friedman1),
    "friedman2": Table(
        "as above; inputs of very different scales", 3000, 4,
        lambda seed: _column(*datasets.make_friedman2(3000, noise=125.0, random_state=seed)),
    ),
    "friedman3": Table(
        "as above; an angle, steep near an edge", 3000, 4,
        lambda seed: _column(*datasets.make_friedman3(3000, noise=0.1, random_state=seed)),
    ),
    "swiss-roll": Table(
        "place along a rolled-up sheet in space, with noise", 3000, 3,
        lambda seed: _column(*datasets.make_swiss_roll(3000, noise=0.1, random_state=seed)),
    ),
    "thresholds": Table("twelve steps, each at thresholds of two inputs", 6000, 20, _thresholds),
    "periodic": Table("waves along inputs and sums of two inputs", 30_000, 8, _periodic),
    "codes": Table("four codes of 3 to 24 categories in no order, two numbers", 3000, 6, _codes),
    "chick-weights": Table(
        "weight of chicks by age and diet", 578, 3, _river("ChickWeights"), True, RIVER
    ),
    "trump-approval": Table(
        "approval of a president, from five polls and the date", 1001, 6,
        _river("TrumpApproval"), True, RIVER,
    ),
    "solar-flare": Table(
        "number of flares of three classes, from codes of a region", 1066, 10,
        _river("SolarFlare"), True, RIVER,
    ),
    "water-flow": Table(
        "flow through a pipe, from the time, the hour and the weekday", 1268, 3,
        _river("WaterFlow"), True, RIVER,
    ),
    "drift": Table(
        "Friedman's first function; inputs change places twice", 6000, 10, _drift, True
    ),
    "few-rows": Table("a smooth function in 50 rows", 1050, 5, _few_rows, learned=50),
    "one-input": Table("a wave with a step", 1000, 1, _one_input),
    "wide": Table("a sum of 10 among 500 inputs, in 100 rows", 1100, 500, _wide, learned=100),
    "large-scale": Table(
        "Friedman's first function; inputs of scale 30 to 1e6, targets in millions",
        1500, 10, _large_scale,
    ),
}  # fmt: skip
"""All tables by name: those that are shipped, computed, in order, and small or odd."""
