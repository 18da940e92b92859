"""Display of a training: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, Task, TextColumn

from losse.dyna.options import Training
from losse.dyna.progress import EVALUATING, TRAINING, TrainingObserver, TrainingProgress

LINES = 10
"""Largest number of plain lines about evaluations."""
QUIET_SECONDS = 10.0
"""Longest time between two plain lines, as long as there are steps."""
REFRESH_SECONDS = 0.1
"""Shortest time between two changes of what is shown."""


class TrainView(TrainingObserver):
    """Display of stage, steps, speed and time left, of the latest return and model error.

    Attributes
    ----------
    checkpoint
        Folder and number of steps of the newest checkpoint, None if there is none.
    """

    def __init__(self, console: Console, training: Training) -> None:
        self._console = console
        self._steps = training.steps
        self._spoken = 0
        self._latest = ""
        self.checkpoint: tuple[Path, int] | None = None
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            console=console,
            get_time=time.monotonic,
            disable=not console.is_terminal,
        )
        name = f"{training.agent} with {training.model}"
        # The clock of the estimates starts with the first step.
        self._bar = self._progress.add_task(name, start=False, total=training.steps, shown="")
        self._refreshed = self._said = -QUIET_SECONDS

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def stage(self, name: str) -> None:
        """Show what begins, unless it is the usual."""
        if name not in (TRAINING, EVALUATING):
            self._say(f"{name} ...")
        if name != TRAINING:
            self._progress.update(self._bar, shown=f"{name} ...")

    def stepped(self, steps: int) -> None:
        """Show steps, speed and time left."""
        now = time.monotonic()
        if now - self._refreshed < REFRESH_SECONDS:
            return
        self._refreshed = now
        first = not self._task.started
        if first:
            self._progress.start_task(self._bar)
            self._said = now - QUIET_SECONDS + 1.0  # a first line about the speed in a second
        self._show(steps)
        if now - self._said >= QUIET_SECONDS:
            self._say(self._joined(f"step {steps} of {self._steps}", self._pace()))

    def evaluated(self, progress: TrainingProgress) -> None:
        """Show the return of an evaluation and the model's error."""
        self._latest = f"return {progress.curve[-1][1]:.1f}"
        if progress.errors:
            self._latest += f", model error {progress.errors[-1][1]:.3f}"
        self._show(progress.steps)
        share = progress.steps * LINES // self._steps
        if share > self._spoken:
            self._spoken = share
            self._say(self._joined(f"step {progress.steps}: {self._latest}", self._pace()))

    def saved(self, folder: Path, steps: int) -> None:
        """Remember the newest checkpoint."""
        self.checkpoint = folder, steps

    def _show(self, steps: int) -> None:
        self._progress.update(self._bar, completed=steps)
        self._progress.update(self._bar, shown=self._joined(self._latest, self._pace()))

    def _pace(self) -> str:
        speed, left = self._task.speed, self._task.time_remaining
        if not speed or left is None:
            return ""
        return f"{speed:.3g} steps/s, {timedelta(seconds=round(left))} left"

    @staticmethod
    def _joined(*parts: str) -> str:
        return ", ".join(part for part in parts if part)

    @property
    def _task(self) -> Task:
        return self._progress.tasks[0]

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        if not self._console.is_terminal:
            self._console.print(line, highlight=False, soft_wrap=True)
