"""Display of a training: a live line with the return and the model's error, or plain lines."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from losse.dyna.evaluation import TrainingProgress
    from losse.dyna.options import Training

LINES = 10
"""Largest number of plain lines, where there is no terminal."""


class TrainView:
    """Shows steps, time left, and after each evaluation the return and the model's error."""

    def __init__(self, console: Console, training: Training) -> None:
        self._console = console
        self._steps = training.steps
        self._spoken = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[latest]}"),
            console=console,
            disable=not console.is_terminal,
        )
        name = f"{training.agent} with {training.model}"
        self._bar = self._progress.add_task(name, total=training.steps, latest="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, progress: TrainingProgress) -> None:
        """Tell how far the training is."""
        latest = f"return {progress.curve[-1][1]:.1f}"
        if progress.errors:
            latest += f", model error {progress.errors[-1][1]:.3f}"
        self._progress.update(self._bar, completed=progress.steps, latest=latest)
        share = progress.steps * LINES // self._steps
        if not self._console.is_terminal and share > self._spoken:
            self._spoken = share
            self._console.print(f"step {progress.steps}: {latest}", highlight=False)
