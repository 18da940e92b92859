"""`losse bench accuracy`: errors, time and memory of learners on transitions of environments.

One record is written per contender, stream and seed; a run that has its record is not repeated.
Table and figures are drawn from the records.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import get_args

import matplotlib as mpl
from rich.console import Console

from benchmarks.accuracy.contenders.entries import ENTRIES, NEEDS, entry
from benchmarks.accuracy.contenders.leaders import VARIANTS
from benchmarks.accuracy.measure import measure, sample_of_tests
from benchmarks.accuracy.plan import LARGE, SMALL, Preset, environment_of, kind_of, plan
from benchmarks.accuracy.streams.cache import Kind, is_cached, load
from benchmarks.display import show
from losse.cli import fail
from losse.cli.progress import RunDisplay
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.runner import complete, missing, require_packages
from losse.runs.store import Store
from losse.runs.style import RC
from losse.runs.workers import Failure, run_jobs

REQUIRED = ("gymnasium", "mujoco")


@dataclass(frozen=True)
class Settings:
    """Compare errors, time and memory on transitions of reinforcement learning environments."""

    preset: Preset = "quick"
    """`quick` stops early: 10,000 rows, the network and River's forests at fewer."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    """A random policy, a changing policy, a sequence of tasks."""
    environments: tuple[str, ...] = LARGE + SMALL
    """Which environments to learn."""
    contenders: tuple[str, ...] = tuple(ENTRIES)
    """Who competes; variants of the recommended model can be named as well."""
    seeds: int = 1
    """Seeds from 0, of the streams and of the contenders."""
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Number of processes, of one thread each; 0 runs everything in this one."""
    results: Path | None = None
    """Folder of records, table and figures; else results/bench/accuracy, or results/quick/..."""
    cache: Path | None = None
    """Folder of the streams; else the user's cache folder."""
    only_report: bool = False
    """Draw table and figures from the records that exist."""
    page: Path | None = None
    """A page of the documentation whose tables are renewed, such as docs/accuracy.md."""

    def __post_init__(self) -> None:
        known_names = (*ENTRIES, *VARIANTS)
        for name, known in (("environments", LARGE + SMALL), ("contenders", known_names)):
            for value in set(getattr(self, name)) - set(known):
                raise ValueError(f"{name}: {value!r} is unknown; choose from {', '.join(known)}")
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")

    @property
    def folder(self) -> Path:
        """Folder of the records."""
        usual = "results/bench/accuracy" if self.preset == "full" else "results/quick/accuracy"
        return self.results or Path(usual)


def run(settings: Settings) -> list[Record]:
    """Measure what has no record yet; write table and figures of all records; print the table."""
    store = Store(settings.folder)
    failed = [] if settings.only_report else compute(settings, store)
    records = store.read()
    show(report(records, settings.folder, settings.page))
    if failed:
        fail(f"{len(failed)} runs failed: {', '.join(run.name for run in failed)}")
    return records


def compute(settings: Settings, store: Store) -> list[Run]:
    """Compute the runs that have no record; return those that failed."""
    runs = plan(
        settings.preset, settings.kinds, settings.environments, settings.contenders, settings.seeds
    )
    left = missing(runs, store)
    require_packages(NEEDS, sorted({run.method for run in left}))
    console = Console()
    prepare(left, settings, console)
    with RunDisplay(console, "accuracy") as display:
        return complete(
            partial(execute, settings.cache),
            runs,
            store,
            display,
            name=settings.preset,
            workers=settings.workers,
        )


def prepare(runs: Sequence[Run], settings: Settings, console: Console) -> None:
    """Make the streams that are not in the cache, each once."""
    streams = {stream_of(run): None for run in runs}
    absent = [stream for stream in streams if not is_cached(*stream, folder=settings.cache)]
    for stream, result in run_jobs(partial(_make, settings.cache), absent, settings.workers):
        if isinstance(result, Failure):
            raise RuntimeError(f"no stream {stream}: {result.reason}\n{result.trace}")
        console.print(f"made the stream {' '.join(map(str, stream))}", highlight=False)


def execute(cache: Path | None, runs: Sequence[Run]) -> list[Record]:
    """Measure each of the runs."""
    records = []
    for run in runs:
        _, environment, rows, seed = stream_of(run)
        whole = load(kind_of(run.setting), environment, rows, seed, cache)
        stream = sample_of_tests(whole, run.options["tests"])
        found = measure(entry(run.method, stream, seed), stream, run.options["checkpoints"])
        record = run.record(
            found.test[-1],
            seconds=found.seconds[-1],
            curve=list(zip(found.samples, found.test, strict=True)),
            details=dataclasses.asdict(found),
        )
        records.append(record)
    return records


def stream_of(run: Run) -> tuple[Kind, str, int, int]:
    """Kind, environment, length and seed of a run's rows; a sequence of tasks is an agent's."""
    kind = kind_of(run.setting)
    made: Kind = "random" if kind == "random" else "changing"
    return made, environment_of(run.setting), run.options["rows"], run.seed


def report(records: Sequence[Record], folder: Path, page: Path | None = None) -> str:
    """Write table.md, table.csv and the figures, and renew a page; return the text of the tables.

    Raises FileNotFoundError if there are no records.
    """
    from benchmarks.accuracy import tables
    from benchmarks.accuracy.figures import draw

    if not records:
        raise FileNotFoundError(f"no records in {folder}")
    text = tables.document(records)
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "table.csv").write_text(tables.long_table(records).csv() + "\n", encoding="utf-8")
    with mpl.rc_context(RC):
        for stem, figure in draw(records).items():
            save_figure(figure, folder / stem)
    if page is not None:
        filled = tables.fill(page.read_text(encoding="utf-8"), records)
        page.write_text(filled, encoding="utf-8")
    return text


def _make(cache: Path | None, stream: tuple[Kind, str, int, int]) -> None:
    load(*stream, folder=cache)
