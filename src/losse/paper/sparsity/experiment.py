"""Figure 7: follow-the-leader and gradient descent on the same, ever sparser features.

The streams and the test of `losse.paper.random_walk`, learned on the same Losse features (10 grids,
2-d) with more and more bins, so ever sparser ones:

- `losse`: the sparse follow-the-leader update, one sample at a time.
- `gradient-descent`: at each step one step of plain gradient descent (equation 7) on the mean
  squared error of 50 fresh samples of X_t.
- `adam`: the same with steps of Adam. The paper does not say which of the two it means.

The learning rate is the best for each level and number of bins, by mean error on seeds other than
the final ones. The largest rate of gradient descent is at the edge of what is stable.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from losse.paper.random_walk import walks
from losse.runs.experiment import SWEEP_SEED, Run, best, methods_of
from losse.runs.record import Record
from losse.runs.table import Table, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "sparsity"
METHODS = ("losse", "gradient-descent", "adam")
CONTROLS = ()
NEEDS: Mapping[str, tuple[str, ...]] = {}
SEEDS_AT_ONCE: Mapping[str, int] = {}

LEARNING_RATES = {
    "gradient-descent": (3e-3, 1e-2, 3e-2, 1e-1, 2e-1),
    "adam": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2),
}
MINIBATCH = 50
GRIDS: Mapping[str, Any] = {"n_grids": 10, "grid_dim": 2}


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    samples: int
    seeds: int
    sweep_seeds: int
    levels: tuple[float, ...]
    bins: tuple[int, ...]


PRESETS = {
    "quick": Preset(3000, 5, 2, (0.0, 0.9, 0.99), (5, 10, 30)),
    "paper": Preset(10_000, 30, 5, (0.0, 0.4, 0.8, 0.9, 0.95, 0.99), (5, 10, 20, 30)),
}


@dataclass(frozen=True, kw_only=True)
class Settings(walks.WalkSettings):
    """Follow the leader, or descend gradients on the same sparse features (figure 7)."""


def sweep(settings: Settings) -> list[Run]:
    """All learning rates of both kinds of gradient descent, on seeds of their own."""
    preset = PRESETS[settings.preset]
    return [
        Run(
            NAME, method, level, SWEEP_SEED + k,
            _options(settings, method, bins) | {"learning_rate": rate},
            swept=("n_bins", "learning_rate"),
        )
        for method in methods_of(settings, METHODS)
        for bins in preset.bins
        for level in preset.levels
        for rate in LEARNING_RATES.get(method, ())
        for k in range(preset.sweep_seeds)
    ]  # fmt: skip


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All numbers of bins, levels and seeds, with the learning rates that the sweep chose."""
    preset = PRESETS[settings.preset]
    runs = []
    for method in methods_of(settings, METHODS):
        for bins in preset.bins:
            candidates = [record for record in swept if record.settings["n_bins"] == bins]
            for level in preset.levels:
                options = _options(settings, method, bins)
                if method in LEARNING_RATES:
                    options |= best(candidates, method, level, ["learning_rate"])
                runs += [
                    Run(NAME, method, level, seed, options, swept=("n_bins",))
                    for seed in range(settings.seeds or preset.seeds)
                ]
    return runs


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Learn one stream, and test at the end."""
    return [_learn(run) for run in runs]


def table(records: Sequence[Record]) -> Table:
    """Mean final error and its standard error, by method, bins and level.

    Times are in the records, but not here: they are of the clock, on a machine that others use too.
    """
    levels = sorted({float(record.setting) for record in records})
    rows = []
    for method in METHODS:
        for bins in bins_of(records):
            own = [r for r in records if r.method == method and r.settings["n_bins"] == bins]
            if own:
                rows.append((method, bins, *(mean_score(own, method, level) for level in levels)))
    return Table(("method", "bins", *(f"d = {level:g}" for level in levels)), rows)


def bins_of(records: Sequence[Record]) -> list[int]:
    """The numbers of bins that occur."""
    return sorted({record.settings["n_bins"] for record in records})


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Error against correlation, one panel for each number of bins."""
    from matplotlib.figure import Figure

    from losse.runs.style import plot_means, style_of

    bins = bins_of(records)
    figure = Figure(figsize=(2.5 * len(bins) + 0.8, 3.2), layout="constrained")
    panels = figure.subplots(1, len(bins), sharey=True, squeeze=False)[0]
    for axes, number in zip(panels, bins, strict=True):
        some = [record for record in records if record.settings["n_bins"] == number]
        for method in METHODS:
            levels = sorted({float(r.setting) for r in some if r.method == method})
            means = [mean_score(some, method, level) for level in levels]
            if levels:
                style = style_of(method).marked()
                plot_means(axes, levels, [m for m in means if m], **style)
        axes.set(title=f"{number} bins", xlabel="correlation level d", yscale="log")
    panels[0].set_ylabel("mean squared error at the end")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return {"errors": figure}


def _options(settings: Settings, method: str, bins: int) -> dict[str, Any]:
    samples = settings.samples or PRESETS[settings.preset].samples
    options = {"samples": samples, "period": settings.period, **GRIDS, "n_bins": bins}
    if method == "losse":
        return {**options, "solver": "sparse", "ridge": 1e-5}
    return {**options, "minibatch": MINIBATCH}


def _learn(run: Run) -> Record:
    from losse import FTLRegressor
    from losse.paper.sparsity.descent import ReachedCells, descend

    options = run.options
    stream, test = walks.random_walk(
        float(run.setting), options["samples"], options["period"], run.seed
    )
    X, y = stream.X, stream.y
    if "minibatch" in options:
        inputs, targets = walks.minibatches(stream, options["minibatch"], run.seed)
        X, y = inputs.reshape(-1, 1), targets.ravel()
    encoder = ReachedCells(
        options["n_grids"], options["n_bins"], options["grid_dim"], scaling=None, seed=run.seed
    ).fit(X)
    began = time.perf_counter()
    if run.method == "losse":
        model = FTLRegressor(encoder, solver=options["solver"], ridge=options["ridge"])
        model.partial_fit(X, y)
        weights = model.weights_[:, 0]
    else:
        weights = descend(
            encoder.encode(X),
            y,
            minibatch=options["minibatch"],
            learning_rate=options["learning_rate"],
            adam=run.method == "adam",
        )
    seconds = time.perf_counter() - began
    predicted = encoder.transform(test.X) @ weights
    score = walks.squared_error(predicted, test.y)
    return run.record(score, seconds=round(seconds, 4), curve=[(options["samples"], score)])
