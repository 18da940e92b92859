"""`losse bench dyna`: time of each part of Dyna with DQN or SAC.

SBX's DQN learns discrete control with a world model, at the settings of `losse reproduce
discrete-control`, or its SAC a task of `losse reproduce continuous-control`. Every run has a
process of its own, on one core with one thread, one after the other. One record is written per task
and model; the table and the figure are drawn from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.display import show
from benchmarks.dyna import report
from benchmarks.dyna.profile import Job, measure
from losse.dyna.models import METHODS
from losse.extras import require
from losse.paper.control import continuous_control, tasks
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.workers import Failure, run_jobs

REQUIRED = tasks.RL


@dataclass(frozen=True)
class Settings:
    """Profile Dyna: acting, replay, imagination, updates of the model, gradient steps."""

    envs: tuple[str, ...] = tuple(tasks.TASKS)
    """Tasks to learn: by default those of discrete control; HalfCheetah-v5 and others of
    continuous control take minutes each."""

    models: tuple[str, ...] = ("losse",)
    """World models, as in `losse reproduce`; `model-free-matched` is the same number of gradient
    steps without one."""

    steps: int | None = None
    """Environment steps; by default each task's own number. Other numbers have their own folder."""

    seed: int = 0
    """Seed of agent, model and environment."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench/dyna")
    """Folder of the records, the table and the figure."""

    def __post_init__(self) -> None:
        for name, known in (("envs", tuple(report.TASKS)), ("models", METHODS)):
            for value in getattr(self, name):
                if value not in known:
                    raise ValueError(f"{name} has {value!r}; choose from: {', '.join(known)}")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results if self.steps is None else self.results / f"steps-{self.steps}"


def run(settings: Settings) -> list[Record]:
    """Profile every model on every task, then draw the table of all records."""
    if any(env in continuous_control.TASKS for env in settings.envs):
        require(f"envs={settings.envs}", "mujoco")
    store = Store(settings.folder)
    for env in settings.envs:
        for model in settings.models:
            job = Job(env, model, settings.steps, settings.seed, settings.core)
            # One call each: a process that has run before would have everything compiled.
            for _, result in run_jobs(measure, [job], workers=1):
                if isinstance(result, Failure):
                    raise RuntimeError(f"{job} failed: {result.reason}\n{result.trace}")
                store.put(result)
                print(report.line(result), flush=True)
    records = store.read()
    text = report.table(records)
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    report.draw(records, settings.folder / "profile.png")
    show(text)
    print(f"Records, table and figure: {settings.folder}")
    return records
