"""`losse bench accuracy`: errors, time and memory of learners on transitions and on tables.

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
from benchmarks.accuracy.plan import (
    LARGE,
    SMALL,
    Preset,
    environment_of,
    kind_of,
    plan,
    table_runs,
)
from benchmarks.accuracy.streams.cache import Kind, is_cached, load, parts
from benchmarks.accuracy.streams.csv_file import CsvFile
from benchmarks.accuracy.streams.stream import Stream
from benchmarks.accuracy.streams.tabular import TABLES
from benchmarks.display import show
from losse.cli import fail
from losse.cli.progress import RunDisplay
from losse.extras import require
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.runner import complete, missing, require_packages
from losse.runs.store import Store
from losse.runs.style import RC
from losse.runs.workers import Failure, run_jobs

SIMULATORS = ("gymnasium", "mujoco")


@dataclass(frozen=True)
class Settings:
    """Compare errors, time and memory on transitions of environments, and on tables."""

    preset: Preset = "quick"
    """`quick` stops early: 10,000 rows, the network and River's forests at fewer."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    """A random policy, a changing policy, a sequence of tasks, tables."""
    environments: tuple[str, ...] = LARGE + SMALL
    """Which environments to learn."""
    tables: tuple[str, ...] = tuple(TABLES)
    """Which tables to learn."""
    table: Path | None = None
    """A CSV file to learn instead of all that: inputs and a target, with or without a header."""
    target: str | None = None
    """The target's column in that file; else the last."""
    in_order: bool = False
    """The rows of that file have an order, such as time: they are not shuffled."""
    contenders: tuple[str, ...] = ()
    """Who competes, variants of the recommended model as well; else all that are installed."""
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
        choices = {
            "environments": LARGE + SMALL,
            "tables": tuple(TABLES),
            "contenders": known_names,
        }
        for name, known in choices.items():
            for value in set(getattr(self, name)) - set(known):
                raise ValueError(f"{name}: {value!r} is unknown; choose from {', '.join(known)}")
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")
        if self.table is None and (self.target is not None or self.in_order):
            raise ValueError("target and in_order are about a file; name it with --table")

    @property
    def file(self) -> CsvFile | None:
        """The user's table, if there is one."""
        return CsvFile(self.table, self.target, self.in_order) if self.table else None

    @property
    def folder(self) -> Path:
        """Folder of the records."""
        usual = "results/bench/accuracy" if self.preset == "full" else "results/quick/accuracy"
        if self.file:
            usual = f"results/tables/{self.file.name}"
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
    console = Console()
    runs = wanted(settings, console)
    left = missing(runs, store)
    require_packages(NEEDS, sorted({run.method for run in left}))
    prepare([run for run in left if kind_of(run.setting) != "tables"], settings, console)
    with RunDisplay(console, "accuracy") as display:
        return complete(
            partial(execute, settings.cache, settings.file),
            runs,
            store,
            display,
            name=settings.preset,
            workers=settings.workers,
        )


def wanted(settings: Settings, console: Console) -> list[Run]:
    """All runs, without those whose packages are not installed unless somebody named them."""
    runs = of_file(settings, console) if settings.file else of_plan(settings)
    reasons = {run.name: lacking(run) for run in runs}
    if not settings.contenders:
        for reason in sorted({reason for reason in reasons.values() if reason}):
            console.print(f"left out: {reason}", highlight=False, soft_wrap=True)
        runs = [run for run in runs if not reasons[run.name]]
    return runs


def of_plan(settings: Settings) -> list[Run]:
    """Runs on environments and tables."""
    names = settings.environments + settings.tables
    return plan(settings.preset, settings.kinds, names, settings.contenders, settings.seeds)


def of_file(settings: Settings, console: Console) -> list[Run]:
    """Runs on the user's table; what was done to make it numbers is shown."""
    assert settings.file is not None
    read = settings.file.read()
    for note in read.notes:
        console.print(f"{settings.table}: {note}", highlight=False, soft_wrap=True)
    table = read.table(settings.in_order)
    options = {"target": read.target, "digest": read.digest, "in_order": settings.in_order}
    return [
        run
        for seed in range(settings.seeds)
        for run in table_runs(settings.file.name, table, settings.contenders, seed, **options)
    ]


def lacking(run: Run) -> str:
    """Why a run cannot be computed here; empty if it can."""
    table = TABLES.get(environment_of(run.setting))
    try:
        require(f"the method {run.method}", *NEEDS.get(run.method, ()))
        require(f"the table {environment_of(run.setting)}", *(table.needs if table else ()))
    except ModuleNotFoundError as error:
        return str(error)
    return ""


def prepare(runs: Sequence[Run], settings: Settings, console: Console) -> None:
    """Make the streams of transitions that are not in the cache, each once."""
    if runs:
        require("a stream of transitions", *SIMULATORS, otherwise="or use --kinds tables")
    streams = {stream_of(run): None for run in runs}
    absent = [stream for stream in streams if not is_cached(*stream, folder=settings.cache)]
    for stream, result in run_jobs(partial(_make, settings.cache), absent, settings.workers):
        if isinstance(result, Failure):
            raise RuntimeError(f"no stream {stream}: {result.reason}\n{result.trace}")
        console.print(f"made the stream {' '.join(map(str, stream))}", highlight=False)


def execute(cache: Path | None, file: CsvFile | None, runs: Sequence[Run]) -> list[Record]:
    """Measure each of the runs."""
    records = []
    for run in runs:
        stream = sample_of_tests(whole_stream(run, cache, file), run.options["tests"])
        contender, at = entry(run.method, stream, run.seed), run.options["checkpoints"]
        is_table = file or kind_of(run.setting) == "tables"
        apart = {} if is_table else parts(environment_of(run.setting))
        found = measure(contender, stream, at, apart)
        record = run.record(
            found.curve[-1][1],
            seconds=found.seconds[-1],
            curve=found.curve,
            details=dataclasses.asdict(found),
        )
        records.append(record)
    return records


def whole_stream(run: Run, cache: Path | None, file: CsvFile | None) -> Stream:
    """The rows of a run: those of a file, of a table, or of an environment."""
    if file:
        return file.read().table(file.in_order).stream(run.seed)
    kind, name = kind_of(run.setting), environment_of(run.setting)
    if kind == "tables":
        return TABLES[name].stream(run.seed)
    return load(kind, name, run.options["rows"], run.seed, cache)


def stream_of(run: Run) -> tuple[Kind, str, int, int]:
    """Kind, environment, length and seed of transitions; a sequence of tasks is an agent's."""
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
