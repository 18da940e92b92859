"""A line of progress on the terminal for work that is counted in bytes."""

import sys
import time
from collections.abc import Callable

_EVERY = 0.2
"""Seconds between updates; work that takes less shows nothing."""


def byte_progress(label: str) -> Callable[[int, int], None]:
    """Make a function of (bytes done, bytes in all) that shows percent, gigabytes and rate.

    The line goes to the error stream if that is a terminal, and nowhere otherwise.

    >>> report = byte_progress("Saving")
    >>> report(500, 1000)
    """
    started = shown = time.monotonic()
    visible = False

    def report(done: int, total: int) -> None:
        nonlocal shown, visible
        now = time.monotonic()
        last = done >= total
        if not sys.stderr.isatty() or not (now - shown >= _EVERY or (last and visible)):
            return
        shown = now
        visible = not last
        percent = 100 * done / total if total else 100
        rate = done / max(1e-9, now - started) / 1e9
        line = f"{label}: {percent:3.0f} % of {total / 1e9:.2f} GB, {rate:.2f} GB/s"
        # Blanks cover what a longer line left behind.
        print(f"\r{line:<78}", end="\n" if last else "", file=sys.stderr, flush=True)

    return report
