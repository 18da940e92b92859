"""How the demo shows what changes: one picture on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

LINES = 10
"""Plain lines in all, where there is no terminal."""


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
