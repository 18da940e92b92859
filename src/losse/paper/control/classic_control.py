"""The presets of `losse train` on classic environments, which the paper does not have.

Each training is as `losse.dyna.preset` has it, with two methods:

- `losse`: with the world model of the preset.
- `model-free-matched`: the same agent without a model, with as many gradient steps on real data.

Two controls run if they are asked for: `model-free`, with one gradient step per training call, and
`oracle`, with the truth instead of a model. The score is the mean normalised return over all
evaluations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from losse.paper.control import tasks
from losse.paper.control.tasks import Task
from losse.runs.experiment import Run, TaskSettings, methods_of, no_sweep
from losse.runs.record import Record
from losse.runs.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "classic-control"
METHODS = ("losse", "model-free-matched")
CONTROLS = ("model-free", "oracle")
NEEDS: Mapping[str, tuple[str, ...]] = dict.fromkeys((*METHODS, *CONTROLS), tasks.RL)
SEEDS_AT_ONCE: Mapping[str, int] = {}
SEEDS = {"quick": 1, "paper": 5}
EVALUATIONS = 10

TASKS = {
    "CartPole-v1": Task("CartPole", worst=0, best=500),
    "MountainCar-v0": Task("MountainCar", worst=-200, best=-100),
    "Acrobot-v1": Task("Acrobot", worst=-500, best=-70),
    "LunarLander-v3": Task("LunarLander", worst=-200, best=250),
    "Pendulum-v1": Task("Pendulum", worst=-1600, best=-150),
}
"""Environments, and what their returns mean."""


@dataclass(frozen=True, kw_only=True)
class Settings(TaskSettings):
    """Train the preset of each classic environment, with Losse and without a model."""

    KNOWN = TASKS


sweep = no_sweep  # presets are chosen


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All environments, methods and seeds."""
    seeds = settings.seeds or SEEDS[settings.preset]
    return [
        Run(NAME, method, env, seed, _options(env, method, settings.steps))
        for env in settings.envs or TASKS
        for method in methods_of(settings, METHODS, CONTROLS)
        for seed in range(seeds)
    ]


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Train one agent for each run."""
    return [tasks.train_preset(run, TASKS[str(run.setting)]) for run in runs]


def table(records: Sequence[Record]) -> Table:
    """Mean score, last return and seconds of every environment and method."""
    return tasks.preset_table(records, TASKS, (*METHODS, *CONTROLS))


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Learning curves, one environment beside the other."""
    from losse.paper.control.figures import draw_curves

    return {"curves": draw_curves(records, (*METHODS, *CONTROLS), TASKS)}


def _options(env: str, method: str, steps: int | None) -> dict[str, Any]:
    from losse.dyna.presets import preset

    return tasks.preset_options(preset(env, method), steps, EVALUATIONS)
