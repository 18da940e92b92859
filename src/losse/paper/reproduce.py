"""From an experiment to its records: find what is missing, compute it, go on after failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from losse.extras import require
from losse.paper import load
from losse.paper.experiment import CommonSettings, Experiment, Run, folder_of, methods_of
from losse.paper.workers import Failure, run_jobs
from losse.records import Record, plain, read_record, write_json


class Display(Protocol):
    """Shows how the runs proceed."""

    def stage(self, name: str, jobs: Sequence[Job], done: int) -> None:
        """A stage begins: `done` runs have records already, `jobs` hold those that are left."""

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """The runs of a job are written."""

    def failed(self, job: Job, failure: Failure) -> None:
        """The runs of a job have failed."""


class Job(NamedTuple):
    """Runs that are computed together: they differ in nothing but the seed."""

    runs: tuple[Run, ...]

    def __str__(self) -> str:
        first, last = self.runs[0], self.runs[-1]
        return first.name if first == last else f"{first.name} to {last.seed}"


def reproduce(name: str, settings: CommonSettings, display: Display) -> list[Run]:
    """Compute all runs of an experiment that have no record yet; return those that failed.

    First the sweep, then the final runs with the hyperparameters it chose. A method with a failed
    run in the sweep has no final runs, since its choice would be another once that run is repaired.
    """
    experiment = load(name)
    controls = getattr(experiment, "CONTROLS", ())  # few experiments have any
    methods = methods_of(settings, experiment.METHODS, controls)
    settings = dataclasses.replace(settings, methods=methods)
    require_packages(experiment, settings.methods or ())
    folder = folder_of(settings, name)

    sweep = experiment.sweep(settings)
    failed = complete(name, settings, sweep, folder / "sweep", "sweep", display)
    broken = {run.method for run in failed}
    whole = tuple(method for method in settings.methods or () if method not in broken)
    settings = dataclasses.replace(settings, methods=whole)
    paths = [path_of(run, folder / "sweep") for run in sweep if run.method in whole]
    final = experiment.final(settings, [read_record(path) for path in paths])
    return failed + complete(name, settings, final, folder, "final", display)


def complete(
    name: str,
    settings: CommonSettings,
    runs: Sequence[Run],
    folder: Path,
    stage: str,
    display: Display,
) -> list[Run]:
    """Compute those of `runs` that have no record in `folder`; return those that failed."""
    missing = [run for run in runs if not path_of(run, folder).exists()]
    refuse_other_settings([run for run in runs if path_of(run, folder).exists()], folder)
    jobs = group(missing, load(name))
    if not jobs:
        return []
    display.stage(stage, jobs, len(runs) - len(missing))
    failed: list[Run] = []
    for job, result in run_jobs(partial(_execute, name, settings), jobs, settings.workers):
        if isinstance(result, Failure):
            display.failed(job, result)
            failed += job.runs
            continue
        for run, record in zip(job.runs, result, strict=True):
            write_json(path_of(run, folder), record)
        display.finished(job, result)
    return failed


def group(runs: Sequence[Run], experiment: Experiment) -> list[Job]:
    """Put runs that differ only in the seed together, as many as the experiment takes at once."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        alike = dataclasses.replace(run, seed=0, swept=())
        groups.setdefault(repr(alike), []).append(run)
    jobs = []
    for members in groups.values():
        size = experiment.SEEDS_AT_ONCE.get(members[0].method, 1)
        jobs += [Job(tuple(members[i : i + size])) for i in range(0, len(members), size)]
    return jobs


def path_of(run: Run, folder: Path) -> Path:
    """Where the record of a run is, or will be."""
    return folder / f"{run.name}.json"


def refuse_other_settings(runs: Sequence[Run], folder: Path) -> None:
    """Raise ValueError if records that exist come from other settings than those of their runs."""
    others = []
    for run in runs:
        old, new = read_record(path_of(run, folder)).settings, plain(run.options)
        differences = [
            f"{key} {old.get(key)}, now {new.get(key)}"
            for key in sorted({*old, *new})
            if old.get(key) != new.get(key)
        ]
        if differences:
            others.append(f"{run.name}.json: {'; '.join(differences)}")
    if others:
        raise ValueError(
            f"{len(others)} of the records in {folder} come from other settings ({others[0]}). "
            "Remove them to compute these runs again, or choose another folder with --out."
        )


def require_packages(experiment: Experiment, methods: Sequence[str]) -> None:
    """Raise ModuleNotFoundError if a method needs a package that is not installed."""
    for method in methods:
        require(
            f"the method {method}",
            *experiment.NEEDS.get(method, ()),
            otherwise="or name other methods with --methods",
        )


def _execute(name: str, settings: Any, job: Job) -> list[Record]:
    records = load(name).execute(settings, job.runs)
    wanted = [(run.method, run.setting, run.seed) for run in job.runs]
    if [(record.method, record.setting, record.seed) for record in records] != wanted:
        raise RuntimeError(f"the records of {job} are not those of its runs")
    return records
