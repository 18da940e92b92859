"""The records of an experiment in a few files: `runs.jsonl`, `sweep.jsonl`, `environments.json`.

A line is a record, and names the environment that it was made in. Only the process that a user
started writes, under a lock: it appends whole lines and waits until they are on the disk. What a
crash leaves behind is at most one line without an end; it counts for nothing, and is cut off
before the next line is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from losse.runs.provenance import Environment
from losse.runs.record import Record, record_of
from losse.storage.atomic import replacing
from losse.storage.jsonfile import write_json

try:
    import fcntl
except ImportError:  # Windows, where two commands must not write the same experiment at once
    fcntl = None  # type: ignore[assignment]

Stage = Literal["runs", "sweep"]
STAGES: tuple[Stage, ...] = ("runs", "sweep")
"""Final runs, and those that choose hyperparameters."""


class Store:
    """Store of the records of one folder.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.add([Record(experiment="toy", method="losse", setting="a", seed=0, score=0.25)])
    >>> [record.score for record in store.read()], store.read("sweep")
    ([0.25], [])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, stage: Stage = "runs") -> Path:
        """Path of the file of a stage."""
        return self.folder / f"{stage}.jsonl"

    def read(self, stage: Stage = "runs") -> list[Record]:
        """All records of a stage, sorted; ValueError names a line that is none."""
        environments = self.environments()
        records = []
        for number, line in self.lines(stage):
            try:
                records.append(record_of(line, environments))
            except ValueError as error:
                raise ValueError(f"{self.path(stage)}, line {number}: {error}") from error
        return sorted(records, key=lambda record: record.key.order)

    def lines(self, stage: Stage = "runs") -> Iterator[tuple[int, str]]:
        """The whole lines of a stage with their numbers, from 1."""
        if self.path(stage).exists():
            whole, _, _ = self.path(stage).read_text(encoding="utf-8").rpartition("\n")
            yield from enumerate(whole.split("\n") if whole else (), start=1)

    def environments(self) -> dict[str, Environment]:
        """Environments that lines refer to, by id."""
        path = self.folder / "environments.json"
        if not path.exists():
            return {}
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            return {name: Environment(**fields) for name, fields in known.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not a table of environments: {error}") from error

    def add(self, records: Iterable[Record], stage: Stage = "runs") -> None:
        """Append records; when this returns they are on the disk."""
        records = list(records)
        text = "".join(record.line() + "\n" for record in records)
        with self._lock():
            self._remember(records)
            _cut_torn_line(self.path(stage))
            with self.path(stage).open("ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())

    def put(self, record: Record, stage: Stage = "runs") -> None:
        """Write a record in the place of those of its method, setting and seed."""
        where = record.key[:3]
        with self._lock():
            kept = [old for old in self.read(stage) if old.key[:3] != where]
            self._rewrite([*kept, record], stage)

    def drop(self, unwanted: Callable[[Record], bool], stage: Stage = "runs") -> int:
        """Remove unwanted records; return how many they were."""
        with self._lock():
            before = self.read(stage)
            kept = [record for record in before if not unwanted(record)]
            if len(kept) < len(before):
                self._rewrite(kept, stage)
            return len(before) - len(kept)

    def tidy(self) -> None:
        """Sort all records and keep the last of each key; forget environments without records."""
        with self._lock():
            found = {stage: self.read(stage) for stage in STAGES}
            for stage, records in found.items():
                if self.path(stage).exists():
                    self._rewrite(list({r.key: r for r in records}.values()), stage)
            used = {r.environment.id: r.environment for records in found.values() for r in records}
            self._write_environments(used)

    def keep_patch(self, patch: str, name: str) -> Path:
        """Write the difference between the code of some records and its commit beside them."""
        path = self.folder / f"{name}.patch"
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as write:
            write(patch.encode())
        return path

    def _rewrite(self, records: list[Record], stage: Stage) -> None:
        self._remember(records)
        records = sorted(records, key=lambda record: record.key.order)
        with replacing(self.path(stage)) as write:
            write("".join(record.line() + "\n" for record in records).encode())

    def _remember(self, records: Iterable[Record]) -> None:
        """Write environments that are new down, before any line refers to them."""
        known = self.environments()
        new = {record.environment.id: record.environment for record in records}
        if not new.keys() <= known.keys():
            self._write_environments(known | new)

    def _write_environments(self, known: dict[str, Environment]) -> None:
        table = {name: asdict(known[name]) for name in sorted(known)}
        write_json(self.folder / "environments.json", table)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Wait until no other process writes here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process, however that ends
            yield


def _cut_torn_line(path: Path) -> None:
    """Cut off what follows the last end of a line: a crash left it, and its run has no record."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read(1) in (b"\n", b""):
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        os.fsync(file.fileno())


def read_records(folder: str | os.PathLike[str]) -> list[Record]:
    """All final records of a folder, sorted by method, setting and seed.

    >>> read_records("no such folder")
    []
    """
    return Store(folder).read()


def write_record(record: Record, folder: str | os.PathLike[str]) -> Path:
    """Write a record in the place of an earlier one of its method, setting and seed.

    >>> import tempfile
    >>> record = Record(experiment="toy", method="losse", setting="a", seed=0, score=0.25)
    >>> write_record(record, tempfile.mkdtemp()).name
    'runs.jsonl'
    """
    store = Store(folder)
    store.put(record)
    return store.path()
