"""Progress of a training, and the observer that is told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

LOADING = "loading PyTorch and JAX"
MAKING = "making environments and agent"
READING = "reading the checkpoint"
COMPILING = "compiling"
TRAINING = "training"
EVALUATING = "evaluating"
COMPLETE = "all steps are done already"


@dataclass(frozen=True)
class TrainingProgress:
    """State of a training: how far it is, and at its end the result.

    Attributes
    ----------
    curve
        (environment steps, mean return of an evaluation).
    times
        (environment steps, seconds of training up to an evaluation), on the processor: a busy
        machine does not change them much.
    errors
        (environment steps, error of the world model on the newest transitions, relative to their
        change).
    later_errors
        The same after five imagined steps.
    first_end
        Environment steps until the first episode that was not cut off: in the paper's discrete
        tasks, when the goal was first reached. None if there was none.
    seconds
        Time of training by the clock, without the evaluations.
    update_seconds, imagination_seconds
        The world model's part of that time.
    model_cpu_seconds
        The same, on the processor.
    diverged
        What was wrong with the world model when it ended the training; None if it was not.
    """

    steps: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    times: tuple[tuple[int, float], ...] = ()
    errors: tuple[tuple[int, float], ...] = ()
    later_errors: tuple[tuple[int, float], ...] = ()
    first_end: int | None = None
    seconds: float = 0.0
    update_seconds: float = 0.0
    imagination_seconds: float = 0.0
    model_cpu_seconds: float = 0.0
    gradient_steps: int = 0
    diverged: str | None = None

    @property
    def score(self) -> float:
        """Mean over all evaluations: good early and good at the end. NaN without any."""
        return sum(value for _, value in self.curve) / len(self.curve) if self.curve else math.nan

    @property
    def model_share(self) -> float:
        """The world model's share of the time."""
        spent = self.update_seconds + self.imagination_seconds
        return spent / self.seconds if self.seconds else 0.0


class TrainingObserver:
    """Observer of a training; this one does nothing with what it is told."""

    def stage(self, name: str) -> None:
        """Hear that a stage begins, one of those that this module names: it may take a while."""

    def stepped(self, steps: int) -> None:
        """Hear that so many environment steps are done in all."""

    def evaluated(self, progress: TrainingProgress) -> None:
        """Hear what an evaluation has found."""

    def saved(self, folder: Path, steps: int) -> None:
        """Hear that there is a checkpoint of so many steps."""
