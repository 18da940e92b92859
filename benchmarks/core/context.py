"""Context of the sections: the data, the two models, and how much to measure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import transitions
from benchmarks.core.bench import Settings
from benchmarks.core.yardstick import Yardstick
from benchmarks.timing import Contender
from losse import FTLRegressor, LosseEncoder

RIDGE = 1e-5
N_BINS = 10
GRID_DIM = 2
ALL_ROWS = 100_000
TEST_ROWS = 5_000  # the last ones; nothing but `growth` learns that far
SCALE_ROWS = 10_000

Solver = Literal["sparse", "exact", "dense", "auto"]
Dtype = Literal["float64", "float32"]


class Budget(NamedTuple):
    """Sizes of all sections; a check of the optimum costs about half a second."""

    update_rows: int
    predict_repeats: int
    exact_rows: int
    exact_check_every: int
    large_rows: int
    large_reference_rows: int
    recommended_rows: int
    startup_repeats: int


BUDGETS = {
    "quick": Budget(600, 3, 4_500, 250, 7_000, 250, 2_000, 3),
    "full": Budget(4_000, 10, 8_000, 25, 8_000, 6_000, 30_000, 7),
}


@dataclass
class Bench:
    """One run of the benchmark, as the sections see it."""

    settings: Settings
    step: Callable[[str], None]
    """Shows what is being measured; called between measurements only."""

    @property
    def budget(self) -> Budget:
        """Sizes of this run's sections."""
        return BUDGETS[self.settings.preset]

    @cached_property
    def rows(self) -> transitions.Transitions:
        """Standardised transitions in double precision, as this library takes them."""
        made = transitions.load(self.settings.env_id, ALL_ROWS, self.settings.seed)
        return transitions.standardise(made, SCALE_ROWS)

    @cached_property
    def single(self) -> transitions.Transitions:
        """The same rows in single precision, as the yardstick takes them."""
        return transitions.Transitions(*(part.astype(np.float32) for part in self.rows))

    @property
    def test(self) -> transitions.Transitions:
        """Rows that no comparison of accuracy has learned."""
        return transitions.Transitions(*(part[-TEST_ROWS:] for part in self.rows))

    def encoder(self, n_grids: int) -> LosseEncoder:
        """The paper's encoder; the inputs are scaled already, for both sides alike."""
        return LosseEncoder(
            n_grids=n_grids,
            n_bins=N_BINS,
            grid_dim=GRID_DIM,
            scaling=None,
            seed=self.settings.seed,
        )

    def model(self, n_grids: int, solver: Solver, dtype: Dtype = "float64") -> FTLRegressor:
        """This library's model at the paper's settings."""
        return FTLRegressor(encoder=self.encoder(n_grids), solver=solver, ridge=RIDGE, dtype=dtype)

    def yardstick(self, n_grids: int) -> Yardstick:
        """The yardstick with the same projection."""
        projection = self.encoder(n_grids).fit(self.rows.inputs[:1]).projection_
        return Yardstick(projection, self.rows.targets.shape[1], n_bins=N_BINS, ridge=RIDGE)

    def learning(self, name: str, model: FTLRegressor | Yardstick, stride: int = 1) -> Contender:
        """A contender that learns the rows it is given."""
        if isinstance(model, Yardstick):
            x, y = self.single
            learn = model.learn
        else:
            x, y = self.rows
            learn = model.partial_fit
        return Contender(name, lambda i, j: learn(x[i:j], y[i:j]), stride)

    def test_error(self, model: FTLRegressor | Yardstick) -> float:
        """Normalised mean squared error on the test rows, averaged over outputs."""
        x, y = self.test
        return nmse(model.predict(x.astype(np.float32) if isinstance(model, Yardstick) else x), y)


def environment() -> dict[str, str]:
    """The environment of further processes: they import what this one does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def nmse(predicted: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    """Mean over outputs of the squared error divided by the output's variance."""
    return float(np.mean(np.mean((predicted - y) ** 2, axis=0) / np.var(y, axis=0)))
