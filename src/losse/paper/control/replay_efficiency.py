"""Figure 6: Losse against networks that replay memories of several sizes, by samples and time.

Dyna on Gridworld as in `discrete_control`: Losse, which keeps no transitions, against
networks that replay a uniform sample of them (coreset) of several sizes. Compared by environment
steps and by time; the time is that of training alone, on the processor. The paper does not name the
sizes.

The DQN's learning rate is one for all: 3e-3, the best of Losse on Gridworld in `discrete_control`,
with which networks find the goal as well. `--learning-rate` changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from losse.paper.control import tasks
from losse.runs.experiment import CommonSettings, Run, methods_of, no_sweep
from losse.runs.record import Record
from losse.runs.table import Table, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "replay-efficiency"
METHODS = ("losse", "coreset")
CONTROLS = ()
NEEDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(METHODS, tasks.RL)
SEEDS_AT_ONCE: Mapping[str, int] = {}
ENV = "losse/Gridworld-v0"


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    seeds: int
    sizes: tuple[int, ...]


PRESETS = {
    "quick": Preset(2, (100, 1000)),
    "paper": Preset(30, (100, 500, 1000, 5000)),
}


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """Losse against coresets of several sizes on Gridworld (figure 6)."""

    steps: int | None = None
    """Environment steps; by default the task's own number."""
    sizes: tuple[int, ...] | None = None
    """Transitions in the coreset; by default those of the preset."""
    learning_rate: float = 3e-3
    """Learning rate of the DQN."""


sweep = no_sweep


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All sizes and seeds; a run's setting is the number of transitions kept, 0 for Losse."""
    preset = PRESETS[settings.preset]
    runs = []
    for method in methods_of(settings, METHODS):
        sizes = (0,) if method == "losse" else settings.sizes or preset.sizes
        for size in sizes:
            options = tasks.options_of(method, ENV, settings.steps, settings.learning_rate)
            if method == "coreset":
                options["model"] = {"coreset_size": size}
            seeds = settings.seeds or preset.seeds
            runs += [Run(NAME, method, size, seed, options) for seed in range(seeds)]
    return runs


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Train one agent for each run."""
    return [tasks.train_run(run, tasks.training_of(run, ENV), tasks.TASKS[ENV]) for run in runs]


def table(records: Sequence[Record]) -> Table:
    """Mean score, time and the model's part of it, by what is kept."""
    rows = []
    for method in METHODS:
        for size in sorted({r.setting for r in records if r.method == method}):
            own = [r for r in records if (r.method, r.setting) == (method, size)]
            cpu = float(np.mean([r.details["cpu_seconds"][-1][1] for r in own]))
            update = float(np.mean([r.details["update_seconds"] for r in own]))
            rows.append((method, size, mean_score(own, method, size), cpu, update))
    columns = ("method", "kept", "normalised return", "CPU seconds", "model updates by the clock")
    return Table(columns, rows)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Figure 6: returns by environment steps, and by seconds."""
    from losse.paper.control.figures import draw_efficiency

    return {"efficiency": draw_efficiency(records)}
