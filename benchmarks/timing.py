"""Fair timing of programs side by side, on a machine that others use too.

They take turns over the same rows in short chunks, and who goes first alternates, so that a slow
spell of the machine meets all of them.  Absolute times are only reported; judgements are on two
ratios, and both have to hold: of the median wall time per row, which ignores single disturbances,
and of the total processor time, which hides no expensive row but counts no other process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Contender:
    """Something that handles rows ``[first, last)`` when called, ``stride`` rows at a time."""

    name: str
    task: Callable[[int, int], object]
    stride: int = 1


@dataclass
class Timings:
    """Seconds per row of every call, and the sums."""

    per_row: list[float] = field(default_factory=list)
    rows: int = 0
    wall: float = 0.0
    cpu: float = 0.0

    @property
    def median(self) -> float:
        """Median seconds per row, by wall clock."""
        return statistics.median(self.per_row)

    @property
    def mean(self) -> float:
        """Total processor time over the number of rows."""
        return self.cpu / self.rows

    def summary(self) -> dict[str, float]:
        """Figures that a record keeps."""
        return {
            "rows": self.rows,
            "median_seconds_per_row": self.median,
            "mean_seconds_per_row": self.wall / self.rows,
            "mean_cpu_seconds_per_row": self.mean,
        }


def take_turns(
    contenders: Sequence[Contender],
    chunks: Sequence[tuple[int, int]],
    after: Callable[[int], object] = lambda last: None,
) -> dict[str, Timings]:
    """Let every contender handle every chunk, in turn; ``after`` runs untimed after each chunk."""
    timings = {contender.name: Timings() for contender in contenders}
    for turn, (first, last) in enumerate(chunks):
        for contender in contenders if turn % 2 == 0 else reversed(contenders):
            clock(contender, first, last, timings[contender.name])
        after(last)
    return timings


def clock(contender: Contender, first: int, last: int, into: Timings) -> None:
    """Time one contender over one chunk."""
    cpu = time.process_time()
    for start in range(first, last, contender.stride):
        stop = min(start + contender.stride, last)
        begin = time.perf_counter()
        contender.task(start, stop)
        taken = time.perf_counter() - begin
        into.per_row.append(taken / (stop - start))
        into.wall += taken
        into.rows += stop - start
    into.cpu += time.process_time() - cpu


def split(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Chunks of ``size`` rows that cover ``[first, last)``."""
    return [(start, min(start + size, last)) for start in range(first, last, size)]
