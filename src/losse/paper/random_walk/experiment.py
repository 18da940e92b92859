"""Figures 4 and 9: learners on a stream whose inputs drift, at several levels of correlation.

The piecewise random walk of appendix C.2 (B = 1) has the same distribution of inputs at every
correlation level d, and only their order differs. Each learner sees the stream once. Its score is
the mean squared error at the end on independent samples across all S_t (`walks` has the
choices that the paper leaves open).

Methods of the paper:

- `losse`: follow-the-leader with the sparse update, 10 grids of 10 x 10 bins.
- `nn-online`: two hidden layers of 50 ReLU units, one step of Adam per sample.
- `nn-batch`: the same network, one step of Adam per minibatch of 50 fresh samples of X_t.

Both networks have the best of the paper's eight learning rates at each level.

Beyond the paper:

- `losse-exact`: the same features with the exact leader instead of the sparse update.
- `fourier`: recursive least squares on 40 random Fourier features: as many non-zeros as Losse has,
  the paper's measure of equal cost (section 4.1). The best projection scale at each level, of
  those of appendix C.1 and one more, since the largest of them came out best.
- `river`: the best regressor of River, one for all levels: that with the lowest mean error at d = 0
  and d = 0.9. Being slow, it has fewer seeds.
- `recommended`: `FTLRegressor()` in batches of 50; made for more inputs than one, and with fewer
  seeds, too.

All choices are made on seeds other than the final ones, by mean error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.paper.random_walk import walks
from losse.runs.experiment import SWEEP_SEED, Run, best, methods_of
from losse.runs.record import Record
from losse.runs.table import Table, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "random-walk"
METHODS = ("losse", "nn-online", "nn-batch", "losse-exact", "recommended", "fourier", "river")
CONTROLS = ()
NEEDS: Mapping[str, tuple[str, ...]] = {
    "nn-online": ("jax", "flax", "optax"),
    "nn-batch": ("jax", "flax", "optax"),
    "river": ("river",),
}
SEEDS_AT_ONCE: Mapping[str, int] = {"nn-online": 50, "nn-batch": 10}

LEARNING_RATES = (5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
SCALES = (0.1, 0.3, 0.5, 1.0, 5.0, 10.0, 20.0)
RIVER_LEVELS = (0.0, 0.9)
SLOW = ("recommended", "river")
SWEPT = {
    "nn-online": "learning_rate",
    "nn-batch": "learning_rate",
    "fourier": "scale",
    "river": "regressor",
}

CHECKPOINTS = 10
GROUP = 50
"""Rows per call for the exact learners, which are exact after every call."""
_LOSSE: Mapping[str, Any] = {"n_grids": 10, "n_bins": 10, "grid_dim": 2, "ridge": 1e-5}
_NETWORK: Mapping[str, Any] = {"hidden": (50, 50)}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "losse": {**_LOSSE, "solver": "sparse"},
    "nn-online": {**_NETWORK, "minibatch": 1},
    "nn-batch": {**_NETWORK, "minibatch": 50},
    "losse-exact": {**_LOSSE, "solver": "exact", "rows": GROUP},
    "recommended": {"rows": GROUP},
    "fourier": {"n_components": 40, "ridge": 1e-5, "solver": "exact", "rows": GROUP},
    "river": {},
}


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    samples: int
    seeds: int
    sweep_seeds: int
    slow_seeds: int
    river_sweep_seeds: int
    levels: tuple[float, ...]


PRESETS = {
    "quick": Preset(3000, 5, 2, 1, 1, (0.0, 0.6, 0.9, 0.99)),
    "paper": Preset(10_000, 50, 20, 5, 2, (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)),
}


@dataclass(frozen=True, kw_only=True)
class Settings(walks.WalkSettings):
    """Learn a stream whose inputs drift, at several levels of correlation (figures 4 and 9)."""


def sweep(settings: Settings) -> list[Run]:
    """All candidates of all methods with something to choose, on seeds of their own."""
    preset = PRESETS[settings.preset]
    runs = []
    for method in methods_of(settings, METHODS):
        if method not in SWEPT:
            continue
        river = method == "river"
        levels = RIVER_LEVELS if river else preset.levels
        seeds = preset.river_sweep_seeds if river else preset.sweep_seeds
        runs += [
            Run(
                NAME, method, level, SWEEP_SEED + k,
                _options(settings, method) | {SWEPT[method]: candidate}, swept=(SWEPT[method],),
            )
            for level in levels
            for candidate in _candidates(method)
            for k in range(seeds)
        ]  # fmt: skip
    return runs


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All levels and seeds, with what the sweep chose."""
    preset = PRESETS[settings.preset]
    runs = []
    for method in methods_of(settings, METHODS):
        for level in preset.levels:
            options = _options(settings, method)
            if method in SWEPT:
                where = None if method == "river" else level
                options |= best(swept, method, where, [SWEPT[method]])
            seeds = settings.seeds or preset.seeds
            if method in SLOW:
                seeds = min(seeds, preset.slow_seeds)
            runs += [Run(NAME, method, level, seed, options) for seed in range(seeds)]
    return runs


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Learn the streams of these seeds and test at the end, and a few times before."""
    options, level = runs[0].options, float(runs[0].setting)
    pairs = [
        walks.random_walk(level, options["samples"], options["period"], run.seed) for run in runs
    ]
    if runs[0].method.startswith("nn-"):
        return _learn_networks(runs, pairs)
    return [_learn(run, walk) for run, walk in zip(runs, pairs, strict=True)]


def table(records: Sequence[Record]) -> Table:
    """Mean final error and its standard error, by method and level; seconds per stream."""
    levels = sorted({float(record.setting) for record in records})
    rows = []
    for method in METHODS:
        own = [record for record in records if record.method == method]
        if own:
            seconds = float(np.mean([record.seconds for record in own]))
            rows.append((method, *(mean_score(own, method, level) for level in levels), seconds))
    return Table(("method", *(f"d = {level:g}" for level in levels), "seconds per stream"), rows)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Figure 4, the errors, and figure 9, the streams themselves."""
    from losse.paper.random_walk.figures import draw_errors, draw_streams

    return {"errors": draw_errors(records), "streams": draw_streams(records)}


def _options(settings: Settings, method: str) -> dict[str, Any]:
    samples = settings.samples or PRESETS[settings.preset].samples
    return {"samples": samples, "period": settings.period, **OPTIONS[method]}


def _candidates(method: str) -> Sequence[Any]:
    if method == "river":
        from losse.paper.random_walk.river_regressors import REGRESSORS

        return tuple(REGRESSORS)
    return SCALES if method == "fourier" else LEARNING_RATES


def _learn_networks(runs: Sequence[Run], pairs: Sequence[walks.Walk]) -> list[Record]:
    from losse.paper.random_walk.networks import learn_streams

    options = runs[0].options
    if options["minibatch"] == 1:
        data = [(walk.stream.X, walk.stream.y[:, None]) for walk in pairs]
    else:
        data = [
            walks.minibatches(walk.stream, options["minibatch"], run.seed)
            for run, walk in zip(runs, pairs, strict=True)
        ]
    samples = options["samples"]
    learned = learn_streams(
        np.array([X for X, _ in data], dtype=np.float32)[..., None],
        np.array([Y for _, Y in data], dtype=np.float32),
        np.array([walk.test.X for walk in pairs], dtype=np.float32),
        hidden=tuple(options["hidden"]),
        learning_rate=options["learning_rate"],
        seeds=[run.seed for run in runs],
        checkpoints=CHECKPOINTS if samples % CHECKPOINTS == 0 else 1,
    )
    records = []
    for i, (run, walk) in enumerate(zip(runs, pairs, strict=True)):
        stops = np.linspace(0, samples, len(learned.predictions) + 1).astype(int)[1:].tolist()
        curve = [
            (stop, walks.squared_error(predicted[i, :stop], walk.test.y[:stop]))
            for stop, predicted in zip(stops, learned.predictions, strict=True)
        ]
        records.append(_record(run, curve, learned.seconds / len(runs)))
    return records


def _learn(run: Run, walk: walks.Walk) -> Record:
    learner, rows = _make_learner(run)
    stops = np.unique(np.linspace(0, len(walk.stream.y), CHECKPOINTS + 1).astype(int)).tolist()
    if run.method == "river":
        stops = [0, len(walk.stream.y)]  # its predictions take as long as learning
    curve, seconds = [], 0.0
    for start, stop in pairwise(stops):
        began = time.perf_counter()
        for first in range(start, stop, rows or stop - start):
            part = slice(first, min(first + rows, stop) if rows else stop)
            learner.partial_fit(walk.stream.X[part], walk.stream.y[part])
        seconds += time.perf_counter() - began
        predicted = learner.predict(walk.test.X[:stop])
        curve.append((stop, walks.squared_error(predicted, walk.test.y[:stop])))
    return _record(run, curve, seconds)


def _make_learner(run: Run) -> tuple[Any, int]:
    """A learner with `partial_fit` and `predict`, and the rows it takes at once (0: any number).

    A batch gives the sparse update bit for bit what its rows give one by one.
    """
    options = run.options
    if run.method == "river":
        from losse.paper.random_walk.river_regressors import RiverRegressor

        return RiverRegressor(options["regressor"], run.seed), 0
    from losse import AdaptiveEncoder, FourierEncoder, FTLRegressor, LosseEncoder

    if run.method == "recommended":
        return FTLRegressor(AdaptiveEncoder(seed=run.seed)), options["rows"]
    encoder: Any
    if run.method == "fourier":
        encoder = FourierEncoder(
            options["n_components"], scale=options["scale"], scaling=None, seed=run.seed
        )
    else:
        encoder = LosseEncoder(
            n_grids=options["n_grids"],
            n_bins=options["n_bins"],
            grid_dim=options["grid_dim"],
            scaling=None,
            seed=run.seed,
        )
    regressor = FTLRegressor(encoder, solver=options["solver"], ridge=options["ridge"])
    return regressor, options.get("rows", 0)


def _record(run: Run, curve: list[tuple[float, float]], seconds: float) -> Record:
    # A sweep needs the score only.
    kept = [] if run.swept else [(n, float(f"{error:.4g}")) for n, error in curve]
    return run.record(curve[-1][1], seconds=round(seconds, 4), curve=kept)
