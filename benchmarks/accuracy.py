"""How accurate is the recommended model, and against whom?  `losse bench accuracy`.

One record is written per contender, stream and seed; a run that has its record is not repeated.
Table and figures are drawn from the records.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.accuracy_measure import measure, sample_of_tests
from benchmarks.accuracy_plan import LARGE, SMALL, Preset, environment_of, kind_of, plan
from benchmarks.contenders.entries import ENTRIES, NEEDS, entry
from benchmarks.contenders.variants import VARIANTS
from benchmarks.streams.cache import Kind, is_cached, load
from losse.cli import fail
from losse.cli.progress import RunDisplay
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.runner import EXTRAS, Job, path_of, refuse_other_settings
from losse.runs.store import read_records, write_record
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
        """Where the records are."""
        usual = "results/bench/accuracy" if self.preset == "full" else "results/quick/accuracy"
        return self.results or Path(usual)


def run(settings: Settings) -> list[Record]:
    """Measure what has no record yet; write table and figures of all records; print the table."""
    from benchmarks.accuracy_report import renew_page, report

    console = Console()
    failed = "" if settings.only_report else complete(settings, console)
    records = read_records(settings.folder)
    text = report(records, settings.folder)
    if settings.page is not None:
        renew_page(records, settings.page)
    console.print(Markdown(text) if console.is_terminal else text, soft_wrap=True)
    if failed:
        fail(failed)
    return records


def complete(settings: Settings, console: Console) -> str:
    """Compute the runs that have no record; say how many of them failed, if any did."""
    runs = plan(
        settings.preset, settings.kinds, settings.environments, settings.contenders, settings.seeds
    )
    done = [r for r in runs if path_of(r, settings.folder).exists()]
    refuse_other_settings(done, settings.folder)
    missing = [r for r in runs if r not in done]
    if not missing:
        return ""
    require_packages(missing)
    prepare(missing, settings, console)
    jobs, n_failed = [Job((r,)) for r in missing], 0
    with RunDisplay(console, "accuracy") as display:
        display.stage(settings.preset, jobs, len(done))
        for job, result in run_jobs(partial(execute, settings.cache), jobs, settings.workers):
            if isinstance(result, Failure):
                display.failed(job, result)
                n_failed += 1
            else:
                write_record(result, settings.folder)
                display.finished(job, [result])
    return f"{n_failed} of {len(jobs)} runs failed" if n_failed else ""


def require_packages(runs: Sequence[Run]) -> None:
    """Raise ModuleNotFoundError if a contender needs a package that is not installed."""
    for method in sorted({run.method for run in runs} & set(NEEDS)):
        if find_spec(NEEDS[method]) is None:
            raise ModuleNotFoundError(
                f"{method} needs {NEEDS[method]!r}: pip install 'losse[{EXTRAS[NEEDS[method]]}]', "
                "or name others with --contenders",
                name=NEEDS[method],
            )


def prepare(runs: Sequence[Run], settings: Settings, console: Console) -> None:
    """Make the streams that are not in the cache, each once."""
    streams = {stream_of(run): None for run in runs}
    absent = [stream for stream in streams if not is_cached(*stream, folder=settings.cache)]
    for stream, result in run_jobs(partial(_make, settings.cache), absent, settings.workers):
        if isinstance(result, Failure):
            raise RuntimeError(f"no stream {stream}: {result.reason}\n{result.trace}")
        console.print(f"made the stream {' '.join(map(str, stream))}", highlight=False)


def execute(cache: Path | None, job: Job) -> Record:
    """Measure one run."""
    (run,) = job.runs
    _, environment, rows, seed = stream_of(run)
    whole = load(kind_of(run.setting), environment, rows, seed, cache)
    stream = sample_of_tests(whole, run.options["tests"])
    found = measure(entry(run.method, stream, seed), stream, run.options["checkpoints"])
    return run.record(
        found.test[-1],
        seconds=found.seconds[-1],
        curve=list(zip(found.samples, found.test, strict=True)),
        details=dataclasses.asdict(found),
    )


def stream_of(run: Run) -> tuple[Kind, str, int, int]:
    """What tells the rows of a run's stream; those of a sequence of tasks are an agent's."""
    kind = kind_of(run.setting)
    made: Kind = "random" if kind == "random" else "changing"
    return made, environment_of(run.setting), run.options["rows"], run.seed


def _make(cache: Path | None, stream: tuple[Kind, str, int, int]) -> None:
    load(*stream, folder=cache)
