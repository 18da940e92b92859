"""Display of a benchmark: a line while it measures, and its tables afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown


@contextmanager
def live_line(title: str) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being measured, on a terminal only."""
    console = Console()
    if not console.is_terminal:
        yield lambda detail: None
        return
    # No refresh thread: it would share the core with what is being measured.
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda detail: live.update(f"{title}: {detail}", refresh=True)


def show(text: str) -> None:
    """Print Markdown, drawn on a terminal and as it is elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)


def pin(core: int | None) -> int | None:
    """Keep this process on one core, by default the last it may use; None where that cannot be."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    chosen = max(os.sched_getaffinity(0)) if core is None else core
    os.sched_setaffinity(0, {chosen})
    return chosen
