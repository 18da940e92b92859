"""Where is each world model wrong?  A map for each, which changes while they learn."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from losse.cli.demo_view import LiveView
from losse.envs.gridworld_dynamics import N_ACTIONS
from losse.paper.forgetting.places import CELLS, Frame

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
