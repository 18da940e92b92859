"""From an experiment to its records: find what is missing, compute it, go on after failures."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from losse.extras import require
from losse.runs.experiment import CommonSettings, Engine, Experiment, Run, folder_of, methods_of
from losse.runs.provenance import environment, source_patch
from losse.runs.record import Record
from losse.runs.store import Stage, Store
from losse.runs.workers import Failure, run_jobs, run_jobs_on_ray
from losse.storage.jsonfile import plain

Execute = Callable[[Sequence[Run]], Sequence[Record]]
"""Computes runs that differ in nothing but the seed; workers import it by its name."""


class Job(NamedTuple):
    """Runs that are computed together: they differ in nothing but the seed."""

    runs: tuple[Run, ...]

    def __str__(self) -> str:
        first, last = self.runs[0], self.runs[-1]
        return first.name if first == last else f"{first.name} to {last.seed}"


class Display(Protocol):
    """Display of how the runs proceed."""

    def stage(self, name: str, jobs: Sequence[Job], done: int) -> None:
        """A stage begins: `done` runs have records already, `jobs` hold those that are left."""

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """The runs of a job are written."""

    def failed(self, job: Job, failure: Failure) -> None:
        """The runs of a job have failed."""


def reproduce(experiment: Experiment, settings: CommonSettings, display: Display) -> list[Run]:
    """Compute all runs of an experiment that have no record yet; return those that failed.

    First the sweep, then the final runs with the hyperparameters it chose. A method with a failed
    run in the sweep has no final runs, since its choice would be another once that run is repaired.
    """
    methods = methods_of(settings, experiment.METHODS, experiment.CONTROLS)
    settings = dataclasses.replace(settings, methods=methods)
    require_packages(experiment.NEEDS, methods)
    if settings.engine == "ray":
        require("--engine ray", "ray", otherwise="or use --engine local")
    store = Store(folder_of(settings, experiment.NAME))

    def compute(runs: Sequence[Run], stage: Stage, name: str) -> list[Run]:
        if settings.preset == "paper" and missing(runs, store, stage):
            require_commit(store, allow_dirty=settings.allow_dirty)
        return complete(
            partial(experiment.execute, settings),
            runs,
            store,
            display,
            stage=stage,
            name=name,
            workers=settings.workers,
            engine=settings.engine,
            seeds_at_once=experiment.SEEDS_AT_ONCE,
        )

    sweep = experiment.sweep(settings)
    failed = compute(sweep, "sweep", "sweep")
    broken = {run.method for run in failed}
    settings = dataclasses.replace(settings, methods=tuple(m for m in methods if m not in broken))
    wanted = {run.key for run in sweep if run.method not in broken}
    swept = [record for record in store.read("sweep") if record.key in wanted]
    return failed + compute(experiment.final(settings, swept), "runs", "final")


def complete(
    execute: Execute,
    runs: Sequence[Run],
    store: Store,
    display: Display,
    *,
    name: str,
    stage: Stage = "runs",
    workers: int = 1,
    engine: Engine = "local",
    seeds_at_once: Mapping[str, int] | None = None,
) -> list[Run]:
    """Compute those of `runs` that have no record in the store; return those that failed."""
    refuse_other_options(runs, store, stage)
    left = missing(runs, store, stage)
    if not left:
        return []
    jobs = group(left, seeds_at_once or {})
    display.stage(name, jobs, len(runs) - len(left))
    failed: list[Run] = []
    run = run_jobs_on_ray if engine == "ray" else run_jobs
    for job, result in run(partial(_execute, execute), jobs, workers):
        if isinstance(result, Failure):
            display.failed(job, result)
            failed += job.runs
        else:
            store.add(result, stage)
            display.finished(job, result)
    return failed


def missing(runs: Sequence[Run], store: Store, stage: Stage = "runs") -> list[Run]:
    """Those of `runs` that have no record in the store."""
    done = {record.key for record in store.read(stage)}
    return [run for run in runs if run.key not in done]


def group(runs: Sequence[Run], seeds_at_once: Mapping[str, int]) -> list[Job]:
    """Put runs that differ only in the seed together, as many as their method takes at once."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        alike = dataclasses.replace(run, seed=0, swept=())
        groups.setdefault(repr(alike), []).append(run)
    jobs = []
    for members in groups.values():
        size = seeds_at_once.get(members[0].method, 1)
        jobs += [Job(tuple(members[i : i + size])) for i in range(0, len(members), size)]
    return jobs


def refuse_other_options(runs: Sequence[Run], store: Store, stage: Stage = "runs") -> None:
    """Raise ValueError if the store has records of these runs that were made with other options.

    They would be summarised together. Options that a run names as `swept` may differ.
    """
    others, unlike = [], []
    records = store.read(stage)
    for swept in {run.swept for run in runs}:
        wanted = {
            (*run.key[:3], *_chosen(run.options, swept)): run for run in runs if run.swept == swept
        }
        for record in records:
            run = wanted.get((*record.key[:3], *_chosen(record.settings, swept)))
            if run is not None and run.key != record.key:
                others.append(record)
                unlike.append(f"{run.name}: {_differences(record, run)}")
    if others:
        raise ValueError(
            f"{len(others)} of the records in {store.path(stage)} come from other settings "
            f"({unlike[0]}). Remove them with `{_drop(others, store, stage)}` to compute these "
            "runs again, or choose another folder (--out, or --results of a benchmark)."
        )


def _drop(records: Sequence[Record], store: Store, stage: Stage) -> str:
    """The command that removes the records of these methods at these settings."""
    methods = sorted({record.method for record in records})
    settings = sorted({str(record.setting) for record in records})
    what = ["--methods", *methods, "--settings", *settings, *["--final"][: stage == "runs"]]
    return shlex.join(["losse", "records", "drop", str(store.folder), *what])


def require_packages(needs: Mapping[str, Sequence[str]], methods: Sequence[str]) -> None:
    """Raise ModuleNotFoundError if a method needs a package that is not installed."""
    for method in methods:
        otherwise = "or name other methods"
        require(f"the method {method}", *needs.get(method, ()), otherwise=otherwise)


def require_commit(store: Store, *, allow_dirty: bool) -> None:
    """Raise ValueError if the code has uncommitted changes; if they are allowed, store the patch.

    Records that are to be published tell by their revision which code made them.
    """
    here = environment()
    if not here.is_dirty:
        return
    if not allow_dirty:
        raise ValueError(
            "the code has uncommitted changes, and the paper preset is for records that tell their "
            "code: commit them, or add --allow-dirty to store the patch with the records"
        )
    store.keep_patch(source_patch(), str(here.patch))


def _execute(execute: Execute, job: Job) -> list[Record]:
    records = list(execute(job.runs))
    if [record.key for record in records] != [run.key for run in job.runs]:
        raise RuntimeError(f"the records of {job} are not those of its runs")
    return records


def _chosen(options: Mapping[str, object], names: Sequence[str]) -> list[str]:
    return [repr(plain(options.get(name))) for name in names]


def _differences(record: Record, run: Run) -> str:
    old, new = record.settings, plain(run.options)
    return "; ".join(
        f"{key} {old.get(key)}, now {new.get(key)}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )
