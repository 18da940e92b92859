"""A sum of small grids, each fitted to what those before it leave, which sees what is not smooth.

A grid has two bins along each of five inputs: its cells are those of a decision tree whose nodes of
one depth all ask the same. Cuts are where they lessen the error most, so that thresholds, the codes
of categories and fine waves are followed, which smooth units blur.

Grids fitted to some rows know these too well. So they are fitted several times side by side, each
time without some stretches of rows, and once with all: the former tell what the latter are worth,
and how many of them there should be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from losse._kernels.boosted import cell_means, cut_along, grid_sums
from losse.storage.state import State, StateReader
from losse.typing import Array
from losse.work import Work, blocks

AXES = 5
"""Inputs of a grid."""
RATE = 0.2
"""Share of its fit that each grid contributes."""
BINS = 64
"""Of an input, between which a cut may be."""
LEAST_WEIGHT, RIDGE = 10, 1.0
"""Of a side of a cut, and by which means are shrunk, in rows of mean weight."""
FOLDS, STRETCH = 4, 50
"""Parts of the rows that are left out in turn, and rows in a row that are left out together."""
CHECKED, PATIENCE, ENOUGH = 20, 3, 0.999
"""Grids between checks of the error, checks without gain after which no more are added, and what a
gain leaves of the error at most."""
HOPELESS = 2.0
"""Times the error of others at the first check, from which on more grids would not be better: where
they were in the end, tables of many kinds had 0.3 to 1.4 times it."""
MOST_ROWS, MOST_INPUTS, MOST_OUTPUTS = 8000, 64, 2
"""Rows and mixtures of outputs by which a grid chooses its cuts, and inputs that it chooses from.
Of more, so many are drawn for each grid."""
Places = npt.NDArray[np.int64]
# Operations that take as long as counting a row.
_COUNT = 50.0


@dataclass(frozen=True, eq=False)
class BoostedGrids:
    """Inputs and cuts of all grids (grids, axes), values (grids, cells, outputs), a constant."""

    inputs: Places
    cuts: Array
    values: Array
    constant: Array

    def predict(self, Z: Array) -> Array:
        """Sums over all grids, (n, outputs).

        >>> one = BoostedGrids(np.array([[0]]), np.array([[0.5]]), np.array([[[1.0], [2.0]]]),
        ...                    np.array([10.0]))
        >>> one.predict(np.array([[0.5], [0.6]]))
        array([[11.],
               [12.]])
        """
        out = np.tile(self.constant, (len(Z), 1))
        grid_sums(Z, self.inputs, self.cuts, self.values, out)
        return out

    def of(self, outputs: Places) -> BoostedGrids:
        """The same for some of the outputs."""
        values = np.ascontiguousarray(self.values[:, :, outputs])
        return BoostedGrids(self.inputs, self.cuts, values, self.constant[outputs])

    def state(self) -> State:
        """What a checkpoint keeps."""
        return {
            "inputs": self.inputs,
            "cuts": self.cuts.ravel(),
            "values": self.values,
            "constant": self.constant,
        }

    @classmethod
    def read(cls, saved: StateReader, n_features: int) -> BoostedGrids:
        """What `state` has described."""
        n_outputs, n_grids = saved.length("constant"), saved.length("cuts") // AXES
        inputs = saved.array("inputs", (n_grids, AXES), np.int64)
        if ((inputs < 0) | (inputs >= n_features)).any():
            saved.refuse(f"inputs of grids are not among {n_features}")
        return cls(
            inputs,
            saved.array("cuts", (n_grids * AXES,)).reshape(n_grids, AXES),
            saved.array("values", (n_grids, 1 << AXES, n_outputs)),
            saved.array("constant", (n_outputs,)),
        )


def fit_boosted(
    Z: Array,
    Q: Array,
    weights: Array,
    most: int,
    rng: np.random.Generator,
    errors: Array | float = np.inf,
) -> Work[tuple[BoostedGrids, Array]]:
    """The best sum of at most so many grids, and predictions of each row by fits without it.

    Gives up early where it is far from the ``errors`` of others, for all outputs.

    >>> from losse.work import finished
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.uniform(-1, 1, size=(800, 3))
    >>> y = 1.0 * (Z[:, :1] > 0.3)
    >>> grids, left_out = finished(fit_boosted(Z, y, np.ones(800), 100, rng))
    >>> grids.predict(np.array([[0.2, 0.0, 0.0], [0.4, 0.0, 0.0]])) > 0.5
    array([[False],
           [ True]])
    """
    n, outputs = Q.shape
    bins, edges = np.empty(Z.shape[::-1], dtype=np.uint8), np.empty((Z.shape[1], BINS + 1))
    for own, column, binned in zip(edges, Z.T, bins, strict=True):
        own[:] = _edges(column)
        binned[:] = np.searchsorted(own, column)
        yield n * 80.0 * _COUNT
    share = weights / weights.mean()
    constant = share @ Q / n
    fold = np.arange(n) // STRETCH % FOLDS
    fits = [_Fit(bins, Q - constant, share * (fold != k)) for k in range(FOLDS + 1)]
    left_out, least, best, waited = np.zeros((n, outputs)), np.inf, 0, 0
    for count in range(1, most + 1):
        columns = rng.permutation(len(bins))[:MOST_INPUTS]
        rows = np.arange(n)
        if n > MOST_ROWS:
            rows = np.sort(rng.integers(n, size=MOST_ROWS))
        mixtures = np.eye(outputs)
        if outputs > MOST_OUTPUTS:
            mixtures = rng.normal(size=(outputs, MOST_OUTPUTS))
        for fit in fits:
            yield from fit.add(rows, columns, mixtures)
        if count % CHECKED == 0:
            found = np.stack([fit.predicted for fit in fits])[fold, np.arange(n)]
            each = share @ (found + constant - Q) ** 2
            error = float(each.sum())
            yield n * _COUNT * outputs
            waited += 1
            if error < ENOUGH * least:
                left_out, least, best, waited = found, error, count, 0
            hopeless = count == CHECKED and (each > HOPELESS * n * np.asarray(errors)).all()
            if waited == PATIENCE or hopeless:
                break
    inputs, cuts, values = fits[-1].grids(best)
    return BoostedGrids(inputs, edges[inputs, cuts], values, constant), left_out + constant


class _Fit:
    """Grids that are fitted one after the other to weighted rows."""

    def __init__(self, bins: npt.NDArray[np.uint8], targets: Array, weights: Array) -> None:
        self._bins, self._targets, self._weights = bins, targets, weights
        self._inputs: list[Places] = []
        self._cuts: list[Places] = []
        self._values: list[Array] = []
        self.predicted = np.zeros_like(targets)

    def grids(self, count: int) -> tuple[Places, Places, Array]:
        """Inputs of the first grids, bins after which they are cut, and values of cells."""
        inputs, cuts = (
            np.array(own[:count], dtype=np.int64).reshape(count, AXES)
            for own in (self._inputs, self._cuts)
        )
        shape = (count, 1 << AXES, self._targets.shape[1])
        return inputs, cuts, np.array(self._values[:count]).reshape(shape)

    def add(self, rows: Places, columns: Places, mixtures: Array) -> Work[None]:
        """Add a grid, which chooses among some inputs, by mixtures of the outputs of some rows."""
        n, outputs = self._targets.shape
        residuals = self._targets - self.predicted
        mixed = np.column_stack([residuals[rows] @ mixtures, np.ones(len(rows))])
        shares = mixed * self._weights[rows, None]
        cost = len(columns) * len(rows) * shares.shape[1] * _COUNT
        cells = np.zeros(n, dtype=np.int32)
        inputs, cuts = np.empty(AXES, dtype=np.int64), np.empty(AXES, dtype=np.int64)
        done = 0.0
        for axes in blocks(AXES, cost):
            if done:
                yield done
            cut_along(
                self._bins, columns, rows, shares, cells, axes.start, axes.stop, BINS,
                LEAST_WEIGHT, RIDGE, inputs, cuts,
            )  # fmt: skip
            done = cost * (axes.stop - axes.start)
        values = np.empty((1 << AXES, outputs))
        cell_means(cells, residuals, self._weights, RIDGE, values)
        values *= RATE
        self.predicted += values[cells]
        self._inputs.append(inputs)
        self._cuts.append(cuts)
        self._values.append(values)
        yield done + n * _COUNT * outputs


def _edges(column: Array) -> Array:
    """Upper ends of the bins, ascending; those that are not needed have no end."""
    values = np.unique(column)
    if len(values) > BINS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
    else:
        values = (values[:-1] + values[1:]) / 2
    return np.append(values, np.full(BINS + 1 - len(values), np.finfo(float).max))
