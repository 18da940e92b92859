"""A table of results that can be written as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from losse.runs.record import Record


class Mean(NamedTuple):
    """A mean, its standard error and the number of values behind it."""

    mean: float
    error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3g} ± {self.error:.2g}"


Cell = str | int | float | Mean | None


@dataclass(frozen=True)
class Table:
    """Columns and rows; a `Mean` is "mean ± error" in Markdown and three columns in CSV.

    >>> table = Table(("method", "d = 0"), [("losse", Mean(0.25, 0.01, 5)), ("nn", None)])
    >>> print(table.markdown())
    | method | d = 0 |
    |---|---|
    | losse | 0.25 ± 0.01 |
    | nn | |
    >>> print(table.csv())
    method,d = 0,d = 0 s.e.,d = 0 count
    losse,0.25,0.01,5
    nn,,,
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]

    def markdown(self) -> str:
        """The table as text in Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        text = ["| " + " | ".join(map(_show, line)) + " |" for line in lines]
        text[1] = text[1].replace(" ", "")
        return "\n".join(re.sub(r"\|  (?=\|)", "| ", line) for line in text)

    def csv(self) -> str:
        """The table in CSV, at full precision."""
        wide = [
            any(isinstance(row[i], Mean) for row in self.rows) for i in range(len(self.columns))
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        header = [
            [name, f"{name} s.e.", f"{name} count"] if split else [name]
            for name, split in zip(self.columns, wide, strict=True)
        ]
        writer.writerow([name for names in header for name in names])
        for row in self.rows:
            cells: list[Cell] = []
            for cell, split in zip(row, wide, strict=True):
                if split:
                    cells += list(cell) if isinstance(cell, Mean) else [cell, None, None]
                else:
                    cells.append(cell)
            writer.writerow(cells)
        return out.getvalue().rstrip("\n")


def mean_of(values: ArrayLike) -> Mean:
    """The mean of some values with its standard error (0 for a single value).

    >>> mean_of([1.0, 3.0])
    Mean(mean=2.0, error=1.0, n=2)
    """
    (one,) = means_of(np.asarray(values, dtype=np.float64)[:, None])
    return one


def means_of(values: ArrayLike) -> list[Mean]:
    """The mean of each column.

    >>> means_of([[1.0, 5.0], [3.0, 5.0]])
    [Mean(mean=2.0, error=1.0, n=2), Mean(mean=5.0, error=0.0, n=2)]
    """
    rows = np.asarray(values, dtype=np.float64)
    n = len(rows)
    errors = rows.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(rows.shape[1])
    errors[(rows == rows[0]).all(axis=0)] = 0.0  # and not a rounding error
    return [Mean(m, e, n) for m, e in zip(rows.mean(axis=0).tolist(), errors.tolist(), strict=True)]


def mean_score(
    records: Sequence[Record], method: str, setting: str | float | None = None
) -> Mean | None:
    """The mean score of a method at one setting, by default at all; None without records.

    >>> records = [
    ...     Record(experiment="toy", method="losse", setting="a", seed=seed, score=score)
    ...     for seed, score in enumerate([1.0, 3.0])
    ... ]
    >>> print(mean_score(records, "losse", "a"), mean_score(records, "losse", "b"))
    2 ± 1 None
    """
    scores = [r.score for r in records if r.method == method and setting in (None, r.setting)]
    return mean_of(scores) if scores else None


def _show(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.3g}"
    return "" if cell is None else str(cell)
