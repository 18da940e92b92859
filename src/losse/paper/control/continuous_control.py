"""Figure 5, bottom: world models in Dyna with SAC on MuJoCo.

SAC takes several gradient steps per environment step, on minibatches of which 5 % are real; the
rest come from a pool of transitions imagined from visited states. `losse.dyna.presets` has the
recipe of each task. It was chosen with the perfect model, before models were compared. Methods:

- `losse`: the recommended model.
- `full-replay`, `online`, `si`, `coreset` (5,000 rows): networks of four layers of 200 units.
- `model-free`: SAC alone, with one gradient step per step.
- `model-free-matched`: SAC alone with as many gradient steps as with a model.
- `oracle`: the simulator instead of a model, the limit of every comparison.
- `losse-sure`: `losse`, but imagined rows end where the model is unsure; only if it is asked for.

Models know how episodes end, as in MBPO; rewards are learned. Runs go on where they were stopped.
The score is the mean normalised return over all evaluations. Errors of a model are those on the
newest steps of the agent, before it has learned them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.paper.control import tasks
from losse.paper.control.tasks import Task
from losse.runs.experiment import Run, TaskSettings, folder_of, methods_of, no_sweep
from losse.runs.record import Record
from losse.runs.table import Cell, Table, mean_of, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "continuous-control"
METHODS = (
    *("losse", "full-replay", "online", "si", "coreset"),
    *("model-free", "model-free-matched", "oracle"),
)
SURE = "losse-sure"
CONTROLS = (SURE,)
NEEDS: Mapping[str, tuple[str, ...]] = dict.fromkeys((*METHODS, SURE), (*tasks.RL, "mujoco"))
SEEDS_AT_ONCE: Mapping[str, int] = {}
EVALUATIONS = 10
NETWORK: Mapping[str, Any] = {"hidden": [200, 200, 200, 200]}
NETWORKS = ("full-replay", "online", "si", "coreset")
SURE_SHARE = 0.9
ERROR, LATER_ERROR = "model_error", "later_model_error"
"""Errors of the model in the details of a record: of one step, and after five."""

TASKS = {
    "HalfCheetah-v5": Task("HalfCheetah", worst=-300, best=3000),
    "Hopper-v5": Task("Hopper", worst=0, best=3000),
    "Walker2d-v5": Task("Walker2d", worst=0, best=3000),
    "InvertedPendulum-v5": Task("InvertedPendulum", worst=0, best=1000),
    "Humanoid-v5": Task("Humanoid", worst=0, best=5000),
}
"""Environments, and what their returns mean."""
FIGURE = tuple(env for env in TASKS if env != "Humanoid-v5")
"""All but the one that the paper names as a limitation, which runs only if it is asked for."""


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    seeds: int
    envs: tuple[str, ...]


PRESETS = {
    "quick": Preset(1, ("InvertedPendulum-v5", "HalfCheetah-v5")),
    "paper": Preset(5, FIGURE),
}


@dataclass(frozen=True, kw_only=True)
class Settings(TaskSettings):
    """Train SAC with each world model on MuJoCo (figure 5, bottom)."""

    KNOWN = TASKS


sweep = no_sweep  # recipes are chosen


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All environments, methods and seeds; seed by seed, so that all methods have as many."""
    preset = PRESETS[settings.preset]
    return [
        Run(NAME, method, env, seed, options_of(method, env, settings.steps))
        for seed in range(settings.seeds or preset.seeds)
        for env in settings.envs or preset.envs
        for method in methods_of(settings, METHODS, CONTROLS)
    ]


def options_of(method: str, env: str, steps: int | None) -> dict[str, Any]:
    """Everything that decides a run, as plain values.

    >>> options_of("losse", "HalfCheetah-v5", None)["steps"]
    10000
    """
    from losse.dyna.presets import preset

    tuned = replace(preset(env, _model_of(method)), termination="known")
    if method in NETWORKS:
        tuned = replace(tuned, model_options=dict(NETWORK))
    if method == SURE:
        tuned = replace(tuned, dyna=replace(tuned.dyna, sure_share=SURE_SHARE))
    return tasks.preset_options(tuned, steps, EVALUATIONS)


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Train one agent for each run."""
    folder = folder_of(settings, NAME)
    return [
        tasks.train_preset(run, TASKS[str(run.setting)], folder, _model_of(run.method))
        for run in runs
    ]


def _model_of(method: str) -> str:
    """The world model of a method, or what is used instead of one."""
    return "losse" if method == SURE else method


def table(records: Sequence[Record]) -> Table:
    """Mean score, last return, error of the model and seconds of every environment and method."""
    rows: list[tuple[Cell, ...]] = []
    later = any(record.details.get(LATER_ERROR) for record in records)  # older ones have none
    errors = (ERROR, LATER_ERROR) if later else (ERROR,)
    for env in tasks.tasks_of(records, TASKS):
        for method in (*METHODS, *CONTROLS):
            own = [r for r in records if (r.setting, r.method) == (env, method)]
            if own:
                last = [TASKS[env].returned(record.curve[-1][1]) for record in own]
                score = mean_score(own, method, env)
                diverged = sum("diverged" in record.details for record in own)
                ended = f"{diverged} of {len(own)}" if diverged else None
                means = score, mean_of(last), *_errors(own, errors), *_times(own)
                rows.append((env, method, *means, ended))
    columns = (
        *("environment", "method", "normalised return", "last return"),
        *("error of the model", "after 5 steps")[: len(errors)],
        *("seconds of the model per 1,000 steps", "of all", "models that diverged"),
    )
    return Table(columns, rows)


def _errors(records: Sequence[Record], names: Sequence[str]) -> list[Cell]:
    """Mean errors of the model over training, if there is one that can err."""
    found: list[Cell] = []
    for name in names:
        curves = [record.details.get(name) for record in records if learns(record)]
        errors = [np.mean([y for _, y in curve]) for curve in curves if curve]
        found.append(mean_of(errors) if errors else None)
    return found


def _times(records: Sequence[Record]) -> tuple[Cell, Cell]:
    """Seconds of updates and imagination, and processor time of all, per 1,000 steps."""
    reached = [record.details["cpu_seconds"][-1] for record in records]
    thousands = [steps / 1000 for steps, _ in reached]  # fewer if the model has diverged
    model = np.divide([_model_seconds(record) for record in records], thousands)
    everything = np.divide([seconds for _, seconds in reached], thousands)
    return float(model.mean()), float(everything.mean())


def _model_seconds(record: Record) -> float:
    """On the processor, but by the clock in older records."""
    parts = ("update_seconds", "imagination_seconds")
    by_clock = sum(record.details[part] for part in parts)
    return float(record.details.get("model_cpu_seconds", by_clock))


def learns(record: Record) -> bool:
    """Whether a run has a model that learns."""
    return record.method in ("losse", SURE, *NETWORKS)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Learning curves and errors of the models, one environment beside the other; and means."""
    from losse.paper.control.figures import draw_curves, draw_errors, draw_interquartile

    figures = {"curves": draw_curves(records, METHODS, TASKS)}
    together = [record for record in records if record.setting in FIGURE]
    if (summary := draw_interquartile(together, METHODS, TASKS)) is not None:
        figures["interquartile"] = summary
    learned = [record for record in records if learns(record)]
    if learned:
        figures["errors"] = draw_errors(learned, METHODS, TASKS)
    return figures
