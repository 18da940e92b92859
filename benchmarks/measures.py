"""Measures of a benchmark, which are compared with targets, and their table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.timing import Timings
from losse.runs.table import Table

COLUMNS = ("measure", "ours", "compared with", "ratio", "ratio of CPU totals", "target", "met")


@dataclass
class Measure:
    """One figure, a line of the table.

    ``ratio`` is the figure that ``target`` is about, for speed that of the median wall times;
    ``total_ratio``, of all processor time, has to meet it too.  ``target`` reads ">= 3" or
    "<= 1.01", and is empty where there is none.
    """

    name: str
    ours: str
    reference: str = ""
    ratio: float | None = None
    total_ratio: float | None = None
    target: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if not self.target or self.ratio is None:
            return None
        sign, bound = self.target.split()
        figures = [r for r in (self.ratio, self.total_ratio) if r is not None]
        if sign == ">=":
            return min(figures) >= float(bound)
        return max(figures) <= float(bound)

    def as_dict(self) -> dict[str, Any]:
        """The fields and the verdict, for a record."""
        return asdict(self) | {"met": self.met}


@dataclass
class Outcome:
    """Outcome of a section: its measures, the raw figures behind them, and a curve."""

    measures: list[Measure]
    details: dict[str, Any] = field(default_factory=dict)
    curve: list[tuple[float, float]] = field(default_factory=list)


def speedup(name: str, ours: Timings, yardstick: Timings, target: str = "") -> Measure:
    """Speed per row as a multiple of the yardstick's."""
    return Measure(
        name=name,
        ours=duration(ours.median),
        reference=duration(yardstick.median),
        ratio=yardstick.median / ours.median,
        total_ratio=yardstick.mean / ours.mean,
        target=target,
    )


def duration(seconds: float) -> str:
    """Seconds with a readable unit.

    >>> duration(0.00123)
    '1.23 ms'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table_of(measures: Iterable[Mapping[str, Any]]) -> Table:
    """The table of measures as records keep them.

    >>> print(table_of([Measure("size", "2 GB", "4 GB", 0.5, target="<= 1").as_dict()]).markdown())
    | measure | ours | compared with | ratio | ratio of CPU totals | target | met |
    |---|---|---|---|---|---|---|
    | size | 2 GB | 4 GB | 0.5 | | <= 1 | yes |
    """

    def number(value: float | None) -> str | None:
        return None if value is None else f"{value:.4g}"

    verdicts = {True: "yes", False: "no", None: None}
    rows = [
        (
            m["name"],
            m["ours"],
            m["reference"],
            number(m["ratio"]),
            number(m["total_ratio"]),
            m["target"],
            verdicts[m["met"]],
        )
        for m in measures
    ]
    return Table(COLUMNS, rows)
