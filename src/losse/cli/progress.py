"""Progress of an experiment's runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from losse.runs.record import Record
from losse.runs.runner import Job
from losse.runs.workers import Failure

QUIET_SECONDS = 5.0  # between two plain lines


class RunDisplay:
    """Shows done, left, time left and the latest score; reports each failure with its traceback."""

    def __init__(self, console: Console, experiment: str) -> None:
        self._console = console
        self._experiment = experiment
        self._progress = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=20),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
            # A narrow terminal cuts this one short.
            TextColumn("{task.fields[latest]}", table_column=Column(ratio=1, no_wrap=True)),
            console=console,
            expand=True,
            disable=not console.is_terminal,
        )
        self._bar = TaskID(0)
        self._spoke = -QUIET_SECONDS

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the live line."""
        self._progress.stop()

    def stage(self, name: str, jobs: Sequence[Job], done: int) -> None:
        """A stage begins: `done` runs have records already, `jobs` hold those that are left."""
        total = done + sum(len(job.runs) for job in jobs)
        self._label = f"{self._experiment} ({name})"
        self._left = TimeLeft(jobs)
        self._done, self._total = done, total
        self._bar = self._progress.add_task(
            self._label, total=total, completed=done, left="", latest=""
        )
        if not self._console.is_terminal:
            self._say(f"{self._label}: {total} runs, {done} of them done before")

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """The runs of a job are written."""
        score = sum(record.score for record in records) / len(records)
        self._advance(job, f"{job} scores {score:.4g}")

    def failed(self, job: Job, failure: Failure) -> None:
        """The runs of a job have failed."""
        trace = f"\n{failure.trace}" if failure.trace else ""
        self._say(f"FAILED {job}: {failure.reason}{trace}")
        self._advance(job, f"{job} failed")

    def _advance(self, job: Job, latest: str) -> None:
        self._done += len(job.runs)
        seconds = self._left.after(job)
        left = f"{timedelta(seconds=round(seconds))} left"
        shown = {"left": left, "latest": escape(latest)}
        self._progress.update(self._bar, completed=self._done, **shown)  # type: ignore[arg-type]
        quiet = time.monotonic() - self._spoke < QUIET_SECONDS and self._done < self._total
        if not self._console.is_terminal and not quiet:
            self._spoke = time.monotonic()
            self._say(f"{self._label}: {self._done}/{self._total}, {left}; {latest}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class TimeLeft:
    """Estimates the time left from the mean time of each method's runs, which differ widely."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._left: dict[str, int] = {}
        self._spent: dict[str, list[float]] = {}
        for job in jobs:
            method = job.runs[0].method
            self._left[method] = self._left.get(method, 0) + len(job.runs)
        self._last = time.monotonic()

    def after(self, job: Job) -> float:
        """Count a job as done now; return the seconds left."""
        now = time.monotonic()
        method, count = job.runs[0].method, len(job.runs)
        # While all workers are busy, one job ends per interval: that is its share of the time.
        spent = self._spent.setdefault(method, [0.0, 0.0])
        spent[0] += now - self._last
        spent[1] += count
        self._last = now
        self._left[method] -= count
        total = [sum(column) for column in zip(*self._spent.values(), strict=True)]
        usual = total[0] / total[1]
        seconds = {name: time / runs for name, (time, runs) in self._spent.items()}
        return sum(seconds.get(name, usual) * runs for name, runs in self._left.items())
