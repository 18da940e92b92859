"""Means over seeds of what records say of one contender on one stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.accuracy.measure import LEVELS, largest_rises, running
from benchmarks.accuracy.plan import LENGTH, TASKS
from losse.runs.record import Record
from losse.runs.table import Mean, mean_of

Series = dict[int, Mean]
"""A figure by the number of rows learned."""


def of(records: Sequence[Record], contender: str, setting: str) -> list[Record]:
    """The records of a contender on a stream, one per seed."""
    return [r for r in records if (r.method, r.setting) == (contender, setting)]


def series(records: Sequence[Record], key: str) -> Series:
    """One of the lists that records keep: `test`, if there are test rows, `seconds`, `nbytes`."""
    return _means(records, lambda details: details[key])


def part(records: Sequence[Record], name: str) -> Series:
    """The error on test rows of the `state`, the `reward` or the `termination` alone.

    Empty if it does not vary, or if records are older than this measure.
    """
    return _means(records, lambda details: details.get("parts", {}).get(name, []))


def prequential(records: Sequence[Record]) -> Series:
    """The error of predictions ahead of learning, over all rows up to a checkpoint."""
    return _means(records, lambda details: running(details["samples"], details["prequential"]))


def _means(records: Sequence[Record], values_of: Callable[[Any], Sequence[float]]) -> Series:
    """Means over the records that have values, by checkpoint."""
    values: dict[int, list[float]] = {}
    for record in records:
        if found := values_of(record.details):
            for n, value in zip(record.details["samples"], found, strict=True):
                values.setdefault(n, []).append(value)
    return {n: mean_of(each) for n, each in values.items()}


def final(values: Series) -> Mean | None:
    """A figure at the last checkpoint."""
    return values[max(values)] if values else None


def milliseconds(records: Sequence[Record]) -> Mean:
    """Processor time of learning per row, up to the last checkpoint."""
    return mean_of([1e3 * r.seconds / r.details["samples"][-1] for r in records])


def megabytes(records: Sequence[Record]) -> Mean:
    """Memory at the last checkpoint."""
    return mean_of([r.details["nbytes"][-1] / 1e6 for r in records])


def forgetting(records: Sequence[Record]) -> list[Mean]:
    """The largest rises of the error on a finished task, in percent: see `largest_rises`."""
    ends = [LENGTH["tasks"] * (k + 1) // TASKS for k in range(TASKS)]
    # Who is tested at the end alone has shown nothing.
    curves = [r.details["tasks"] for r in records if len(r.details["tasks"]) >= TASKS]
    rises = [largest_rises(curve, ends) for curve in curves]
    return [mean_of([100 * rise for rise in each]) for each in zip(*rises, strict=True)]


def coverage(records: Sequence[Record]) -> list[Mean]:
    """Share of the test targets within intervals of each of the levels, in percent."""
    shares = [r.details["calibration"] for r in records if r.details["calibration"]]
    return [mean_of([100 * each[str(level)] for each in shares]) for level in LEVELS if shares]
