"""What the demo shows while it learns: a map for each model, or plain lines without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from losse.envs.gridworld_dynamics import N_ACTIONS
from losse.paper.forgetting_places import CELLS, Frame

LINES = 10
"""Plain lines in all, where there is no terminal."""
BARRIER, NEVER, BEFORE, NOW, WRONG = (
    "on grey30",
    "",
    "on grey62",
    "on yellow3",
    "bold red on grey89",
)
LEGEND = Text.assemble(
    ("  ", NOW), " visited lately  ", ("  ", BEFORE), " visited before  ",
    ("●●", WRONG), " wrong where visited",
)  # fmt: skip


class LiveView:
    """Shows the share of wrong predictions of each model, and where they are."""

    def __init__(self, console: Console, methods: Sequence[str], steps: int) -> None:
        self._console = console
        self._methods = methods
        self._steps = steps
        self._line = 0
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, frames: Sequence[Frame]) -> None:
        """Show the latest frame of every model."""
        step = frames[0].step
        if self._live:
            table = Table.grid(padding=(0, 3))
            table.add_row(*map(self._title, self._methods, frames))
            table.add_row(*map(draw_map, frames))
            head = Text(f"step {step} of {self._steps}", style="bold")
            self._live.update(Group(head, table, LEGEND), refresh=True)
        elif LINES * step >= (self._line + 1) * self._steps:
            self._line = LINES * step // self._steps
            shown = "; ".join(
                str(self._title(*pair)) for pair in zip(self._methods, frames, strict=True)
            )
            self._console.print(f"step {step}: {shown}", highlight=False, soft_wrap=True)

    def _title(self, method: str, frame: Frame) -> Text:
        shares = frame.shares
        return Text(
            f"{method}: {shares['seen']:.1%} wrong where it was, {shares['recent']:.1%} where it is"
        )


def draw_map(frame: Frame) -> Text:
    """The cells of the Gridworld, two characters each, the top row first."""
    wrong, seen, recent, possible = (
        mask.reshape(CELLS, CELLS, N_ACTIONS).max(axis=2)
        for mask in (frame.wrong & frame.seen, frame.seen, frame.recent, frame.possible)
    )
    text = Text()
    for row in reversed(range(CELLS)):
        for column in range(CELLS):
            place = (column, row)
            if wrong[place]:
                text.append("● ", WRONG)
            elif recent[place]:
                text.append("  ", NOW)
            elif seen[place]:
                text.append("  ", BEFORE)
            else:
                text.append("  ", NEVER if possible[place] else BARRIER)
        text.append("\n")
    return text
