"""Tables that a user gives as a CSV file: inputs and one target, all as numbers.

Words become integer codes.  Whatever cannot be learned is refused with its place in the file.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.streams.tabular import Table
from losse.typing import Array

DELIMITERS = ",;\t|"
MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))
LEAST_ROWS = 50


class CsvFile(NamedTuple):
    """A user's file, and what it says."""

    path: Path
    target: str | None = None
    in_order: bool = False

    @property
    def name(self) -> str:
        """The file's name in one word, without its ending."""
        return "-".join(self.path.stem.split()) or "table"

    def read(self) -> CsvTable:
        """Read the file."""
        return read_csv(self.path, self.target)


class CsvTable(NamedTuple):
    """Inputs and the target of a file, and what was done to make them numbers."""

    X: Array
    Y: Array
    target: str
    """Name of the target's column."""
    notes: tuple[str, ...]
    """Columns of words that have become codes, a sentence each."""
    digest: str
    """Short hash of the file's content."""

    def table(self, in_order: bool) -> Table:
        """The table as the benchmark learns it."""
        n, width = self.X.shape
        return Table("a file", n, width, lambda seed: (self.X, self.Y), in_order)


class _Line(NamedTuple):
    number: int
    cells: list[str]


def read_csv(path: Path, target: str | None = None) -> CsvTable:
    """Read a table of numbers and words from a file.

    The first line is a header if it has a word above a number, or the name of the target.  A column
    of words gets the codes 0, 1, ... in alphabetical order.

    Parameters
    ----------
    path
        File of comma-separated values; semicolons, tabs and bars separate as well.
    target
        Name of the target's column; the last column by default.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is no such table.  The message has the file, the line, the column and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> lines = ["colour,weight,price", *(f"{c},{i},{2 * i}" for i in range(25) for c in "ba")]
    >>> _ = path.write_text("\\n".join(lines))
    >>> table = read_csv(path)
    >>> table.X[:2].tolist(), table.Y.shape, table.target
    ([[1.0, 0.0], [0.0, 0.0]], (50, 1), 'price')
    >>> table.notes
    ("column 'colour' has 2 words, which become the codes 0 to 1 in alphabetical order",)
    """
    content = _content(path)
    header, lines = _split_header(_lines(path, content), target)
    width = len(lines[0].cells) if lines else 0
    if len(lines) < LEAST_ROWS:
        raise ValueError(f"{path} has {len(lines)} rows; it takes at least {LEAST_ROWS}")
    if width < 2:
        raise ValueError(f"{path} has one column; it takes an input and a target, with commas")
    names = header or [f"column {k + 1}" for k in range(width)]
    last = _position(path, header, target) if target is not None else width - 1

    columns, notes = [], []
    for k, name in enumerate(names):
        values, words = _numbers(path, lines, k, name)
        if words and k == last:
            raise ValueError(
                f"{path}, line {lines[0].number}, column {name!r}: the target must be a number, "
                f"not {lines[0].cells[k]!r}; name another column with --target"
            )
        if words:
            notes.append(
                f"column {name!r} has {words} words, which become the codes 0 to {words - 1} "
                "in alphabetical order"
            )
        columns.append(values)
    y = columns.pop(last)
    if np.ptp(y) == 0:
        raise ValueError(f"{path}, column {names[last]!r}: the target is {y[0]:g} in all rows")
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return CsvTable(np.column_stack(columns), y[:, None], names[last], tuple(notes), digest)


def _content(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; --table takes the path of a CSV file")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: not UTF-8; save the file in that encoding"
        ) from None


def _lines(path: Path, content: str) -> list[_Line]:
    """The lines that are not blank, all of one width."""
    first = next((line for line in content.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(content.splitlines(), delimiter=delimiter)
    lines = [_Line(reader.line_num, [c.strip() for c in cells]) for cells in reader if cells]
    for line in lines:
        if len(line.cells) != len(lines[0].cells):
            raise ValueError(
                f"{path}, line {line.number} has {len(line.cells)} cells, and line "
                f"{lines[0].number} has {len(lines[0].cells)}; put cells with a "
                f"{delimiter!r} in them between quotes, or repair the line"
            )
    return lines


def _split_header(lines: list[_Line], target: str | None) -> tuple[list[str] | None, list[_Line]]:
    if len(lines) < 2:
        return None, lines
    first, second = lines[0].cells, lines[1].cells
    titled = any(_is_word(a) and not _is_word(b) for a, b in zip(first, second, strict=True))
    return (first, lines[1:]) if titled or target in first else (None, lines)


def _is_word(cell: str) -> bool:
    return cell.lower() not in MISSING and _number(cell) is None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _position(path: Path, header: Sequence[str] | None, target: str) -> int:
    if header is None:
        raise ValueError(
            f"{path} has no header, so it has no column {target!r}; add a first line with names, "
            "or leave --target out: the last column is the target then"
        )
    if header.count(target) != 1:
        found = "several columns" if target in header else "no column"
        raise ValueError(
            f"{path}, line 1 has {found} {target!r}; its columns are {', '.join(header)}"
        )
    return header.index(target)


def _numbers(path: Path, lines: Sequence[_Line], k: int, name: str) -> tuple[Array, int]:
    """The values of a column, and the number of different words if it consists of words."""
    cells = [line.cells[k] for line in lines]
    found = [_number(cell) for cell in cells]
    words = sum(value is None for value in found) > len(cells) / 2
    for line, cell, value in zip(lines, cells, found, strict=True):
        place = f"{path}, line {line.number}, column {name!r}"
        if cell.lower() in MISSING:
            raise ValueError(
                f"{place}: the value is missing ({cell!r}); fill it in, such as with the mean of "
                "the column, or leave the row out"
            )
        if words == (value is not None):
            kinds = ("words", "a number") if words else ("numbers", "a word")
            raise ValueError(
                f"{place}: the column consists of {kinds[0]}, and {cell!r} is {kinds[1]}; correct "
                "it, or leave the row or the column out"
            )
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{place}: {cell} is not finite; correct it or leave the row out")
    if not words:
        return np.array(found, dtype=np.float64), 0
    different, codes = np.unique(cells, return_inverse=True)
    return codes.astype(np.float64), len(different)
