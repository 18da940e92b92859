"""Records of a file that grows: only what is new is read, and broken lines are told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from losse.runs.provenance import Environment
from losse.runs.record import Record, record_of

Reduce = Callable[[Record], Any]


@dataclass
class RecordFile:
    """Records of one `runs.jsonl` or `sweep.jsonl`, reduced to what is shown of them.

    Parameters
    ----------
    path
        The file.
    reduce
        Called once with each record; what it returns is kept in its place.

    Attributes
    ----------
    kept
        What was kept of each record, by its key: the last one counts.
    problems
        One sentence for each line that is no record.
    """

    path: Path
    reduce: Reduce
    kept: dict[Any, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _inode: int = -1
    _offset: int = 0
    _number: int = 0

    def refresh(self, environments: dict[str, Environment]) -> None:
        """Read the lines that were written since the last time.

        A file that was replaced or cut is read from its beginning. A line without an end is still
        being written, and waits.
        """
        try:
            with self.path.open("rb") as file:
                about = self.path.stat()
                if about.st_ino != self._inode or about.st_size < self._offset:
                    self.kept, self.problems = {}, []
                    self._inode, self._offset, self._number = about.st_ino, 0, 0
                file.seek(self._offset)
                whole, end, _ = file.read().rpartition(b"\n")
        except OSError as error:
            self.problems = [f"{self.path.name} cannot be read: {error.strerror or error}"]
            self._inode = -1
            return
        if not end:
            return
        self._offset += len(whole) + 1
        for line in whole.split(b"\n"):
            self._number += 1
            try:
                record = record_of(line.decode(), environments)
            except (ValueError, RecursionError) as error:
                self.problems.append(f"{self.path.name}, line {self._number}: {str(error)[:300]}")
            else:
                self.kept[record.key] = self.reduce(record)
