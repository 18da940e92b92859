"""Methods and streams of `losse bench river`: River's own regression track, and more.

The methods are those of River's benchmarks, with their settings and with seeds wherever they take
one; the streams are its two data sets and the synthetic ones of Friedman with and without drift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from river import (
    datasets,
    dummy,
    ensemble,
    forest,
    linear_model,
    neighbors,
    rules,
    stats,
    tree,
)
from river.base import Estimator
from river.datasets import synth
from river.preprocessing import StandardScaler

from losse.integrations.river import LosseRegressor

DISCOUNT = 0.995  # chosen on other drifting streams, see docs/river.md

METHODS: dict[str, Callable[[int], Estimator]] = {
    "losse": lambda seed: LosseRegressor(seed=seed),
    "losse-discount": lambda seed: LosseRegressor(discount=DISCOUNT, seed=seed),
    "mean": lambda seed: dummy.StatisticRegressor(stats.Mean()),
    "linear": lambda seed: StandardScaler() | linear_model.LinearRegression(),
    "pa-1": lambda seed: StandardScaler() | linear_model.PARegressor(mode=1),
    "bayesian-linear": lambda seed: linear_model.BayesianLinearRegression(),
    "knn": lambda seed: StandardScaler() | _nearest_neighbours(seed),
    "hoeffding-tree": lambda seed: StandardScaler() | tree.HoeffdingTreeRegressor(),
    "hoeffding-adaptive-tree": lambda seed: (
        StandardScaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=seed)
    ),
    "sgt": lambda seed: tree.SGTRegressor(),
    "amrules": lambda seed: StandardScaler() | rules.AMRules(),
    "bagging": lambda seed: (
        StandardScaler()
        | ensemble.BaggingRegressor(
            tree.HoeffdingAdaptiveTreeRegressor(bootstrap_sampling=False, seed=seed), seed=seed
        )
    ),
    "ewa": lambda seed: (
        StandardScaler()
        | ensemble.EWARegressor(
            [
                linear_model.LinearRegression(),
                tree.HoeffdingAdaptiveTreeRegressor(seed=seed),
                _nearest_neighbours(seed),
                rules.AMRules(),
            ]
        )
    ),
    "arf": lambda seed: StandardScaler() | forest.ARFRegressor(seed=seed),
    "srp": lambda seed: StandardScaler() | ensemble.SRPRegressor(seed=seed),
    "amf": lambda seed: forest.AMFRegressor(seed=seed),
}

STREAMS: dict[str, Callable[[int, int], Any]] = {
    "ChickWeights": lambda n, seed: datasets.ChickWeights(),
    "TrumpApproval": lambda n, seed: datasets.TrumpApproval(),
    "Friedman": lambda n, seed: synth.Friedman(seed=seed).take(n),
    # Recurring and gradual drift change twice, local drift three times, at even distances.
    "FriedmanDrift-gra": lambda n, seed: _drifting("gra", (n // 3, 2 * n // 3), n, seed),
    "FriedmanDrift-gsg": lambda n, seed: _drifting("gsg", (n // 3, 2 * n // 3), n, seed),
    "FriedmanDrift-lea": lambda n, seed: _drifting("lea", (n // 4, n // 2, 3 * n // 4), n, seed),
}
REAL = ("ChickWeights", "TrumpApproval")
"""Streams of a length of their own, the same for every seed."""


def _nearest_neighbours(seed: int) -> neighbors.KNNRegressor:
    return neighbors.KNNRegressor(engine=neighbors.SWINN(seed=seed))


def _drifting(kind: str, position: tuple[int, ...], n: int, seed: int) -> Any:
    stream = synth.FriedmanDrift(
        drift_type=kind, position=position, transition_window=n // 10, seed=seed
    )
    return stream.take(n)
