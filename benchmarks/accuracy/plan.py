"""Runs of `losse bench accuracy`: streams, contenders, and how far each of them goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from benchmarks.accuracy.contenders.entries import TABULAR, TRANSITIONS
from benchmarks.accuracy.contenders.leaders import STALE, VARIANTS
from benchmarks.accuracy.measure import BATCH
from benchmarks.accuracy.streams.cache import Kind
from benchmarks.accuracy.streams.stream import CUTS
from benchmarks.accuracy.streams.tabular import TABLES, Table
from losse.runs.experiment import Run

EXPERIMENT = "accuracy"
Preset = Literal["quick", "full"]

LARGE = ("Hopper-v5", "HalfCheetah-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5")
SMALL = (
    "InvertedDoublePendulum-v5",
    "Reacher-v5",
    "Pendulum-v1",
    "Acrobot-v1",
    "MountainCarContinuous-v0",
)
WHERE: dict[Kind, tuple[str, ...]] = {
    "random": LARGE + SMALL,
    "changing": LARGE[:3],
    "tasks": LARGE[:3],
    "tables": tuple(TABLES),
}
"""Environments, or tables, of each kind of stream: agents are trained only where it pays."""

LENGTH: dict[Kind, int] = {"random": 50_000, "changing": 20_000, "tasks": 20_000}
"""Rows of a stream of transitions."""
CHECKPOINTS = (1000, 3000, 10_000, 20_000, 50_000)
TASKS = 2**CUTS
LOOKS_PER_TASK = 4  # tests within a task: whether something is forgotten shows in between too

SHORT = 10_000  # rows that are enough in most places
FARTHEST = LARGE[:2]  # where a random policy is followed to the end
RIVER = 1000, 3000  # its forests take milliseconds for each row and output; the latter if farthest
RIVER_TESTS = 1000  # and to predict as well
SMALL_TABLE = 6000  # rows of a table that River's ensembles learn, and that are quick
QUICK_NETWORK = 3000


def plan(
    preset: Preset,
    kinds: Sequence[Kind],
    names: Sequence[str],
    contenders: Sequence[str],
    seeds: int,
) -> list[Run]:
    """All runs on the environments and tables of these names, those of one stream together.

    If nobody is named as a contender, those compete who are usual for a kind of stream.
    """
    runs = []
    for seed in range(seeds):
        for kind, environment in ((k, e) for k in kinds for e in WHERE[k] if e in names):
            if kind == "tables":
                table = TABLES[environment]
                if preset == "full" or table.rows <= SMALL_TABLE:
                    runs += table_runs(environment, table, contenders, seed)
                continue
            for contender in contenders or TRANSITIONS:
                at = checkpoints(kind, environment, contender, preset)
                options: dict[str, Any] = {"checkpoints": at, "rows": LENGTH[kind], "batch": BATCH}
                options["tests"] = RIVER_TESTS if contender == "river-amf" else None
                if at:
                    setting = f"{environment} {kind}"
                    runs.append(Run(EXPERIMENT, contender, setting, seed, options))
    return runs


def table_runs(
    name: str, table: Table, contenders: Sequence[str], seed: int, **options: Any
) -> list[Run]:
    """Runs on one table: everyone learns all of it, but River's ensembles no large one."""
    n = table.n_learned
    at = [*(c for c in CHECKPOINTS if c < n / 2), n]
    runs = []
    for contender in contenders or TABULAR:
        slow = contender.startswith("river-")
        if not slow or table.rows <= SMALL_TABLE:
            tests = RIVER_TESTS if slow else None
            same = {"checkpoints": at, "rows": n, "batch": BATCH, "tests": tests}
            runs.append(Run(EXPERIMENT, contender, f"{name} tables", seed, same | options))
    return runs


def checkpoints(kind: Kind, environment: str, contender: str, preset: Preset) -> list[int]:
    """After how many transitions a contender is tested; none if it cannot go through the stream.

    >>> checkpoints("random", "Walker2d-v5", "full-replay", "full")
    [1000, 3000, 10000]
    >>> checkpoints("tasks", "Hopper-v5", "river-amf", "full")
    []
    >>> checkpoints("random", "Ant-v5", "stages-0", "full")  # no design decision looks there
    []
    >>> checkpoints("random", "Ant-v5", "rebuilt", "full")  # it shows what anybody forgets
    []
    """
    far = environment in FARTHEST
    most = LENGTH[kind] if preset == "full" and (far or kind != "random") else SHORT
    if contender in VARIANTS:
        if not (far and (kind == "random" or (kind == "changing" and contender in STALE))):
            return []
        most = SHORT if kind == "random" else LENGTH[kind]
    if contender == "rebuilt" and kind != "tasks":
        return []
    if contender == "river-amf":
        most = RIVER[far and preset == "full"]
    if contender == "full-replay" and preset == "quick":
        most = QUICK_NETWORK
    if kind != "tasks":
        return [n for n in CHECKPOINTS if n <= most]
    if most < SHORT:
        return []
    looks = TASKS * LOOKS_PER_TASK
    return [n * LENGTH[kind] // looks for n in range(1, looks + 1)]


def kind_of(setting: str | float) -> Kind:
    """The kind of the stream that a record is about."""
    return str(setting).split()[1]  # type: ignore[return-value]


def environment_of(setting: str | float) -> str:
    """The environment that a record is about."""
    return str(setting).split()[0]
