"""How well does an agent do while it learns?  Its returns and its model's errors, as small bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from losse.cli.demo_view import LiveView
from losse.paper.control.tasks import TASKS

if TYPE_CHECKING:
    from losse.dyna.training import Training
    from losse.dyna.watch import Progress

BARS = "▁▂▃▄▅▆▇█"
TO_COME = "·"
NAMES = {
    "losse": "DQN with Losse",
    "model-free-matched": "DQN without a model, as many gradient steps",
}


class AgentView(LiveView):
    """Shows one training: all returns so far, model errors, the first goal, the model's time."""

    def __init__(self, console: Console, training: Training) -> None:
        super().__init__(console, training.steps)
        self._name = NAMES.get(training.model, training.model)
        self._task = TASKS[training.env]
        self._evaluations = training.steps // training.eval_every
        console.print(Text(f"{self._name}:", style="bold"))

    def __enter__(self) -> Self:
        super().__enter__()
        if self._live:
            self._live.update(Text("getting ready", style="dim"), refresh=True)
        return self

    def show(self, progress: Progress) -> None:
        """Show what a training has come to."""
        self.update(
            progress.steps, lambda: self._picture(progress), lambda: self._line_of(progress)
        )

    def _picture(self, progress: Progress) -> Group:
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

    def _line_of(self, progress: Progress) -> str:
        parts = [f"return {progress.curve[-1][1]:.1f}"]
        if progress.errors:
            parts.append(f"model error {progress.errors[-1][1]:.3f}")
            parts.append(f"{progress.model_share:.0%} of the time the model's")
        return ", ".join([*parts, first_goal(progress)])


def first_goal(progress: Progress) -> str:
    """When the goal was first reached, in words."""
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
