"""Views of the demo: one changing picture on a terminal, a few plain lines elsewhere.

`AgentView` shows how an agent does while it learns, as small bars; `MapsView` where each world
model is wrong, as a map for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from losse.dyna.options import Training
from losse.dyna.progress import TrainingObserver, TrainingProgress
from losse.envs.gridworld_dynamics import N_ACTIONS
from losse.paper.control.tasks import TASKS
from losse.paper.forgetting.places import CELLS, Frame

LINES = 10
"""Largest number of plain lines, where there is no terminal."""
BARS = "▁▂▃▄▅▆▇█"
TO_COME = "·"
NAMES = {
    "losse": "DQN with Losse",
    "model-free-matched": "DQN without a model, as many gradient steps",
}
BARRIER, NEVER, BEFORE, NOW, WRONG = (
    "on grey30",
    "",
    "on grey62",
    "on yellow3",
    "bold red on grey89",
)
LEGEND = Text.assemble(
    ("  ", NOW), " visited lately  ", ("  ", BEFORE), " before  ", ("●●", WRONG), " wrong there",
)  # fmt: skip
GAP = 3
"""Characters between two maps."""


class LiveView:
    """A picture of something that takes a known number of steps.

    >>> with LiveView(Console(width=80), steps=100) as view:
    ...     for step in range(25, 101, 25):
    ...         view.update(step, picture=lambda: "a picture", line=lambda: "all is well")
    step 25: all is well
    step 50: all is well
    step 75: all is well
    step 100: all is well
    """

    def __init__(self, console: Console, steps: int) -> None:
        self.steps = steps
        self._console = console
        self._line = 0
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def update(
        self, step: int, picture: Callable[[], RenderableType], line: Callable[[], str]
    ) -> None:
        """Show the latest picture, or a line if it is time for one."""
        if self._live:
            self._live.update(picture(), refresh=True)
        elif LINES * step >= (self._line + 1) * self.steps:
            self._line = LINES * step // self.steps
            self._console.print(f"step {step}: {line()}", highlight=False, soft_wrap=True)


class AgentView(LiveView, TrainingObserver):
    """Shows one training: all returns so far, model errors, the first goal, the model's time."""

    def __init__(self, console: Console, training: Training) -> None:
        super().__init__(console, training.steps)
        self._name = f"{NAMES.get(training.model, training.model)}, seed {training.seed}"
        self._begun = False
        self._task = TASKS[training.env]
        self._evaluations = training.steps // training.eval_every
        console.print(Text(f"{self._name}:", style="bold"))

    def stage(self, name: str) -> None:
        """Show what goes on before the first evaluation."""
        if self._live and not self._begun:
            self._live.update(Text(f"{name} ...", style="dim"), refresh=True)

    def evaluated(self, progress: TrainingProgress) -> None:
        """Show what a training has come to."""
        self._begun = True
        self.update(
            progress.steps, lambda: self._picture(progress), lambda: self._line_of(progress)
        )

    def _picture(self, progress: TrainingProgress) -> Group:
        table = Table.grid(padding=(0, 2))
        returns = [value for _, value in progress.curve]
        bars = sparkline(returns, self._task.worst, self._task.best)
        to_come = TO_COME * (self._evaluations - len(returns))
        table.add_row(
            "return", Text.assemble((bars, "green"), (to_come, "dim")), f"{returns[-1]:.1f}"
        )
        if progress.errors:
            errors = [error for _, error in progress.errors]
            bars = sparkline(errors, 0, max(errors))
            table.add_row("model error", Text(bars, "red"), f"{errors[-1]:.3f}")
        steps = f"step {progress.steps} of {self.steps}, {progress.seconds:.0f} s"
        share = f", {progress.model_share:.0%} of it the model's" if progress.errors else ""
        return Group(f"{steps}{share}", table, first_goal(progress))

    def _line_of(self, progress: TrainingProgress) -> str:
        parts = [f"return {progress.curve[-1][1]:.1f}"]
        if progress.errors:
            parts.append(f"model error {progress.errors[-1][1]:.3f}")
            parts.append(f"{progress.model_share:.0%} of the time the model's")
        return ", ".join([*parts, first_goal(progress)])


def first_goal(progress: TrainingProgress) -> str:
    """Step at which the goal was first reached, in words."""
    if progress.first_end is None:
        return "goal not yet reached"
    return f"goal first reached at step {progress.first_end}"


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """One bar for each value, on a scale from low to high.

    >>> sparkline([-200, -120, -38, 0], -200, -38)
    '▁▄██'
    """
    top = len(BARS) - 1
    shares = [(value - low) / (high - low) if high > low else 0.0 for value in values]
    return "".join(BARS[round(top * min(max(share, 0.0), 1.0))] for share in shares)


class MapsView(LiveView):
    """Shows the share of wrong predictions of each model, and where they are."""

    def __init__(self, console: Console, methods: Sequence[str], steps: int) -> None:
        super().__init__(console, steps)
        self._methods = methods
        gaps = GAP * (len(methods) - 1)
        self._width = 2 if console.width >= 2 * CELLS * len(methods) + gaps else 1

    def show(self, frames: Sequence[Frame]) -> None:
        """Show the latest frame of every model."""
        pairs = list(zip(self._methods, [frame.shares for frame in frames], strict=True))
        was = [f"{method}: {shares['seen']:.1%} wrong where it was" for method, shares in pairs]
        now = [f"{shares['recent']:.1%} where it is" for _, shares in pairs]
        step = frames[0].step

        def picture() -> Group:
            table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
            table.add_row(*was)
            table.add_row(*now)
            table.add_row(*(draw_map(frame, self._width) for frame in frames))
            # With the legend beside it, all fits into 24 lines.
            return Group(Text(f"step {step} of {self.steps}   ", style="bold") + LEGEND, table)

        said = [", ".join(both) for both in zip(was, now, strict=True)]
        self.update(step, picture, line=lambda: "; ".join(said))


def draw_map(frame: Frame, width: int = 2) -> Text:
    """The cells of the Gridworld, one or two characters wide, the top row first."""
    wrong, seen, recent, possible = (
        mask.reshape(CELLS, CELLS, N_ACTIONS).max(axis=2)
        for mask in (frame.wrong & frame.seen, frame.seen, frame.recent, frame.possible)
    )
    lines = []
    for row in reversed(range(CELLS)):
        line = Text()
        for column in range(CELLS):
            place = (column, row)
            if wrong[place]:
                line.append("● "[:width], WRONG)
            elif recent[place]:
                line.append(" " * width, NOW)
            elif seen[place]:
                line.append(" " * width, BEFORE)
            else:
                line.append(" " * width, NEVER if possible[place] else BARRIER)
        lines.append(line)
    return Text("\n").join(lines)
