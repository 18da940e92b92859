"""Figure 5, top: world models in Dyna on Gridworld, MountainCar and Acrobot.

A DQN learns with 32 rows from the replay buffer every 4 steps; with a world model 16 gradient steps
on imagined transitions follow each of these. World models are updated every 25 steps. Methods:

- `losse`: the paper's model, 30 grids of 10 x 10 bins.
- `full-replay`, `online`, `si`, `coreset`: three layers of 32 units, four ways to remember.
- `model-free`: the DQN alone, with one gradient step every 4 steps.
- `model-free-matched`, which the paper lacks: the DQN alone with 17.
- `oracle`, which is a control and runs only if it is asked for: the truth instead of a model.

With `--exploring-starts` training episodes start anywhere and last at most 100 steps, so that there
are many; those runs have a folder of their own.

The DQN's learning rate is the best of the paper's for each method and task, by the mean score over
seeds other than the final ones. `tasks` has the choices that the paper leaves open.
The score is the mean normalised return over all evaluations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.dyna import models
from losse.paper.control import tasks
from losse.paper.control.summary import interquartile
from losse.runs.experiment import SWEEP_SEED, Run, TaskSettings, best, methods_of
from losse.runs.record import Record
from losse.runs.table import Cell, Table, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "discrete-control"
CONTROLS = (models.ORACLE,)
METHODS = tuple(name for name in models.METHODS if name not in CONTROLS)
NEEDS: Mapping[str, tuple[str, ...]] = dict.fromkeys((*METHODS, *CONTROLS), tasks.RL)
SEEDS_AT_ONCE: Mapping[str, int] = {}
LEARNING_RATES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
USUAL_RATE = 1e-3


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    seeds: int
    sweep_seeds: int
    rates: tuple[float, ...]


PRESETS = {
    "quick": Preset(2, 0, (USUAL_RATE,)),
    "paper": Preset(30, 3, LEARNING_RATES),
}


@dataclass(frozen=True, kw_only=True)
class Settings(TaskSettings):
    """Train a DQN with each world model on Gridworld, MountainCar and Acrobot (figure 5, top)."""

    KNOWN = tasks.TASKS
    rates: tuple[float, ...] | None = None
    """Learning rates to choose from; by default those of the preset."""
    sweep_seeds: int | None = None
    """Seeds for that choice; by default those of the preset."""
    exploring_starts: bool = False
    """Start training episodes anywhere, to tell lack of exploration from other faults."""

    @property
    def variant(self) -> str:
        """Runs with exploring starts are another experiment."""
        return "exploring-starts" if self.exploring_starts else ""


def sweep(settings: Settings) -> list[Run]:
    """All learning rates of all methods and tasks; none if there is nothing to choose."""
    rates, seeds = _choice(settings)
    if len(rates) == 1:
        return []
    return [
        Run(
            NAME,
            method,
            env,
            SWEEP_SEED + k,
            _options(settings, method, env, rate),
            swept=("learning_rate",),
        )
        for method in methods_of(settings, METHODS, CONTROLS)
        for env in settings.envs or tasks.TASKS
        for rate in rates
        for k in range(seeds)
    ]


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All seeds, with the learning rate that the sweep chose."""
    rates, _ = _choice(settings)
    # `best` takes the lowest score; here high ones are good. Of equal ones it takes the first, so
    # the choice must not depend on the order in which the runs have ended.
    ordered = sorted(swept, key=lambda record: rates.index(record.settings["learning_rate"]))
    turned = [replace(record, score=-record.score) for record in ordered]
    runs = []
    for method in methods_of(settings, METHODS, CONTROLS):
        for env in settings.envs or tasks.TASKS:
            rate = rates[0]
            if len(rates) > 1:
                rate = best(turned, method, env, ["learning_rate"])["learning_rate"]
            options = _options(settings, method, env, rate)
            seeds = settings.seeds or PRESETS[settings.preset].seeds
            runs += [Run(NAME, method, env, seed, options) for seed in range(seeds)]
    return runs


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Train one agent for each run."""
    envs = [str(run.setting) for run in runs]
    return [
        tasks.train_run(run, tasks.training_of(run, env), tasks.TASKS[env])
        for run, env in zip(runs, envs, strict=True)
    ]


def table(records: Sequence[Record]) -> Table:
    """Mean score by method and task, the interquartile mean over all tasks, and the time."""
    envs = tasks.tasks_of(records)
    rows: list[tuple[Cell, ...]] = []
    for method in (*METHODS, *CONTROLS):
        own = [record for record in records if record.method == method]
        if not own:
            continue
        scores = [mean_score(own, method, env) for env in envs]
        seconds = float(np.mean([record.seconds for record in own]))
        model = float(np.mean([_model_seconds(record) for record in own]))
        summary = interquartile(own, envs)
        rows.append((method, *scores, str(summary) if summary else None, seconds, model))
    titles = [tasks.TASKS[env].title for env in envs]
    columns = ("method", *titles, "interquartile mean", "seconds", "of them the model's")
    return Table(columns, rows)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Figure 5, top, and the interquartile means over all tasks."""
    from losse.paper.control.figures import draw_curves, draw_interquartile

    methods = (*METHODS, *CONTROLS)
    figures = {"curves": draw_curves(records, methods)}
    if (summary := draw_interquartile(records, methods)) is not None:
        figures["interquartile"] = summary
    return figures


def _options(settings: Settings, method: str, env: str, rate: float) -> dict[str, Any]:
    return tasks.options_of(
        method, env, settings.steps, rate, exploring_starts=settings.exploring_starts
    )


def _choice(settings: Settings) -> tuple[tuple[float, ...], int]:
    preset = PRESETS[settings.preset]
    return settings.rates or preset.rates, settings.sweep_seeds or preset.sweep_seeds or 1


def _model_seconds(record: Record) -> float:
    return record.details["update_seconds"] + record.details["imagination_seconds"]
