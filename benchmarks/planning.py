"""`losse bench planning`: decisions per second of each planner with each world model.

Every model has learned the same transitions of a random policy. Planners then decide from states of
these, each search starting from the plan before, on one core with one thread. One record is written
per model and planner, in the place of an earlier one; the table is drawn from all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from benchmarks.display import live_line, pin, show
from benchmarks.measures import Measure, duration, table_of
from benchmarks.timing import Timings
from benchmarks.world.race import collect
from losse.planning import Objective
from losse.planning.registry import PLANNERS, REGRESSORS, make_planner
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.table import Table
from losse.runs.workers import Failure, run_jobs
from losse.world import WorldModel, make_world_model

REQUIRED = ("jax", "flax", "gymnasium")
HORIZON = 20
SAMPLES = 500
ITERATIONS = 4
MOST_SECONDS = 60.0
"""Of measuring one planner with one model: slow ones make fewer decisions."""
TARGET_MS = 50
"""Milliseconds of a decision with the paper's grids."""
MODELS = (*(f"losse-{name}" for name in REGRESSORS), "full-replay")
"""Regressors of Losse by their names in `losse plan`, and a network of the paper's size."""


class Task(NamedTuple):
    """An environment, and the planners that suit it with their options."""

    env_id: str
    planners: dict[str, dict[str, int]]


REFINED = {"horizon": HORIZON, "n_samples": SAMPLES, "n_iterations": ITERATIONS}
TASKS = (
    Task(
        "Pendulum-v1",
        {**dict.fromkeys(("icem", "cem", "mppi"), REFINED)}
        | {"random": {"horizon": HORIZON, "n_samples": SAMPLES}},
    ),
    Task("CartPole-v1", {"beam": {"horizon": HORIZON, "width": SAMPLES}}),
)


@dataclass(frozen=True)
class Settings:
    """Measure decisions per second of all planners and world models on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: a few decisions of each after 300 transitions; full: the published figures."""
    models: tuple[str, ...] = MODELS
    """Which world models to measure."""
    seed: int = 0
    """Seed of the transitions, the models and the planners."""
    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""
    results: Path = Path("results/bench/planning")
    """Folder of the records and the table; a quick run uses its subfolder `quick`."""

    def __post_init__(self) -> None:
        for model in self.models:
            if model not in MODELS:
                raise ValueError(f"models has {model!r}; choose from: {', '.join(MODELS)}")

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results

    @property
    def transitions(self) -> int:
        """Transitions that each model learns."""
        return 300 if self.preset == "quick" else 2000

    @property
    def decisions(self) -> int:
        """Decisions that are timed."""
        return 3 if self.preset == "quick" else 100


def run(settings: Settings) -> list[Record]:
    """Measure in a process of its own, then draw the table of all records."""
    store = Store(settings.folder)
    for model, result in run_jobs(partial(measure, settings), settings.models, workers=1):
        if isinstance(result, Failure):
            raise RuntimeError(f"{model} failed: {result.reason}\n{result.trace}")
        for record in result:
            store.put(record)
    records = store.read()
    text = report(records)
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    show(text)
    print(f"Records and table: {settings.folder}")
    return records


def measure(settings: Settings, model: str) -> list[Record]:
    """Records of all planners with one model."""
    pin(settings.core)
    records = []
    with live_line(model) as step:
        for task in TASKS:
            env = gymnasium.make(task.env_id)
            data = collect(env, settings.transitions, settings.seed)
            known = learned(model, env, settings.seed)
            known.update(*data)
            for planner, options in task.planners.items():
                step(f"{planner} in {task.env_id}")
                timings = decide(known, planner, options, data.obs, settings)
                records.append(record_of(settings, model, planner, task.env_id, options, timings))
            env.close()
    return records


def learned(model: str, env: gymnasium.Env[Any, Any], seed: int) -> WorldModel:
    """A new world model of a name."""
    method, _, regressor = model.partition("-") if model.startswith("losse-") else (model, "", "")
    options: dict[str, Any] = {"seed": seed}
    if regressor:
        options["regressor"] = REGRESSORS[regressor]()
    return make_world_model(method, env.observation_space, env.action_space, **options)


def decide(
    model: WorldModel, name: str, options: dict[str, int], starts: Any, settings: Settings
) -> Timings:
    """Time decisions one by one, of which each goes on from the plan before."""
    planner, wish = make_planner(name, settings.seed, options), Objective()
    chosen = np.random.default_rng(settings.seed).integers(len(starts), size=settings.decisions)
    _, plan = planner(model, starts[0], wish)  # the first compiles
    timings = Timings()
    for row in chosen:
        before, cpu = time.perf_counter(), time.process_time()
        _, plan = planner(model, starts[row], wish, previous=plan)
        taken = time.perf_counter() - before
        timings.per_row.append(taken)
        timings.rows += 1
        timings.wall += taken
        timings.cpu += time.process_time() - cpu
        if timings.wall > MOST_SECONDS:
            break
    return timings


def record_of(
    settings: Settings,
    model: str,
    planner: str,
    env_id: str,
    options: dict[str, int],
    timings: Timings,
) -> Record:
    """The record of one planner with one model; its score is the median time in milliseconds."""
    return Record(
        experiment="bench-planning",
        method=model,
        setting=planner,
        seed=settings.seed,
        score=1e3 * timings.median,
        settings={"env": env_id, "transitions": settings.transitions, **options},
        seconds=timings.wall,
        details=timings.summary(),
    )


def report(records: Sequence[Record]) -> str:
    """The page of all records: the target, and milliseconds and decisions per second of each."""
    planners = [name for name in PLANNERS if any(r.setting == name for r in records)]
    models = [name for name in MODELS if any(r.method == name for r in records)]
    by_place = {(r.method, str(r.setting)): r for r in records}
    rows = []
    for model in models:
        own = [by_place.get((model, planner)) for planner in planners]
        rows.append((model, *(_cell(record) for record in own)))
    table = Table(("model", *planners), rows)
    judged = [m.as_dict() for m in targets(by_place)]
    return f"""# Time of a decision

Milliseconds of a decision by the clock (median), and in brackets decisions per second of processor
time. {SAMPLES} sequences of {HORIZON} steps, {ITERATIONS} iterations for icem, cem and mppi; beam
keeps {SAMPLES} sequences of CartPole's two actions. One core, one thread. Drawn from the records in
this folder by `losse bench planning`.

Processor: {"; ".join(sorted({r.environment.cpu for r in records}))}.

## Target

{table_of(judged).markdown()}

## All

{table.markdown()}
"""


def targets(records: dict[tuple[str, str], Record]) -> list[Measure]:
    """The time of a decision with the paper's grids, judged by clock and by processor."""
    found = []
    for planner in ("icem", "cem", "mppi"):
        record = records.get(("losse-paper", planner))
        if record is not None:
            cpu = 1e3 * float(record.details["mean_cpu_seconds_per_row"])
            found.append(
                Measure(
                    name=f"one decision of {planner} with the paper's 30 grids, milliseconds",
                    ours=duration(record.score / 1e3),
                    reference="1 ms",
                    ratio=record.score,
                    total_ratio=cpu,
                    target=f"<= {TARGET_MS}",
                )
            )
    return found


def _cell(record: Record | None) -> str:
    if record is None:
        return ""
    per_second = 1 / float(record.details["mean_cpu_seconds_per_row"])
    return f"{record.score:.3g} ({per_second:.3g})"
