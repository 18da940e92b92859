"""`losse records`: list, sort, check, drop or export the records of runs."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import tyro
from tyro.conf import FlagCreatePairsOff, Positional

from losse.cli import fail
from losse.runs.record import Record, record_of
from losse.runs.store import STAGES, Store
from losse.runs.table import Table

EVERYTHING = (Path("results"),)
"""Folders to look in by default, with all folders below them."""
Folders = Annotated[tuple[Path, ...], Positional]


@dataclass(frozen=True)
class List:
    """Count the records of each experiment, by method with --methods."""

    folders: Folders = EVERYTHING
    """Folders with records, or above them."""
    methods: Annotated[bool, FlagCreatePairsOff] = False
    """One line for each method."""

    def run(self) -> None:
        """Print a table, one line per folder and file."""
        rows = []
        for store in stores(self.folders):
            for stage in STAGES:
                records = store.read(stage)
                groups = sorted({r.method for r in records}) if self.methods else [""]
                for method in groups if records else ():
                    own = [r for r in records if not method or r.method == method]
                    rows.append((str(store.folder), stage, method or None, *_counts(own)))
        columns = ("folder", "file", "method", "records", "settings", "seeds", "dirty", "processor")
        print(Table(columns, rows).markdown())


@dataclass(frozen=True)
class Tidy:
    """Sort records and rewrite their files; of records with the same key the last is kept."""

    folders: Folders = EVERYTHING
    """Folders with records, or above them."""

    def run(self) -> None:
        """Rewrite each file as a whole or not at all."""
        for store in stores(self.folders):
            store.tidy()
            print(store.folder)


@dataclass(frozen=True)
class Check:
    """Look for lines that are no records, keys that occur twice, and code without a commit."""

    folders: Folders = EVERYTHING
    """Folders with records, or above them."""

    def run(self) -> None:
        """Print what is wrong; the exit code is 1 if anything is."""
        found = [problem for store in stores(self.folders) for problem in problems(store)]
        print("\n".join(found) if found else "All records are well.")
        if found:
            raise SystemExit(1)


@dataclass(frozen=True)
class Drop:
    """Remove records, so that their runs are computed again."""

    folder: Positional[Path]
    """The folder of the records."""
    methods: tuple[str, ...] | None = None
    """Only those of these methods."""
    settings: tuple[str, ...] | None = None
    """Only those of these settings, such as environments."""
    dirty: Annotated[bool, FlagCreatePairsOff] = False
    """Only those of code that was not committed."""
    final: Annotated[bool, FlagCreatePairsOff] = False
    """Only final runs: those that chose hyperparameters stay."""

    def __post_init__(self) -> None:
        if self.methods is None and self.settings is None and not self.dirty:
            raise ValueError(
                "name --methods, --settings or --dirty: without any of them nothing is dropped"
            )

    def run(self) -> None:
        """Remove what is meant from both files, or from that of final runs."""

        def unwanted(record: Record) -> bool:
            named = self.methods is None or record.method in self.methods
            named = named and (self.settings is None or str(record.setting) in self.settings)
            return named and (record.environment.is_dirty or not self.dirty)

        (store,) = stores([self.folder])
        for stage in STAGES[:1] if self.final else STAGES:
            print(f"{store.path(stage)}: {store.drop(unwanted, stage)} records dropped")


@dataclass(frozen=True)
class Export:
    """Write records as CSV, one line each; settings become columns, curves are left out."""

    folders: Folders = EVERYTHING
    """Folders with records, or above them."""
    out: Path | None = None
    """File to write; by default the table is printed."""

    def run(self) -> None:
        """Write the table."""
        if self.out is None:
            export(stores(self.folders), sys.stdout)
        else:
            with self.out.open("w", encoding="utf-8", newline="") as file:
                export(stores(self.folders), file)


COMMANDS: dict[str, Callable[..., Any]] = {
    "list": List,
    "tidy": Tidy,
    "check": Check,
    "drop": Drop,
    "export": Export,
}


def main(arguments: Sequence[str]) -> None:
    """Do what the first argument says."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="losse records", args=list(arguments)
        ).run()
    except (ValueError, OSError) as error:
        fail(str(error))


def stores(folders: Sequence[Path]) -> list[Store]:
    """All stores in these folders and below them."""
    found = []
    for folder in folders:
        paths = {path.parent for stage in STAGES for path in folder.rglob(f"{stage}.jsonl")}
        if not paths:
            raise FileNotFoundError(f"no records in {folder}: name a folder with runs.jsonl")
        found += [Store(path) for path in sorted(paths)]
    return found


def problems(store: Store) -> list[str]:
    """Faults of the records of a store, one line each."""
    found = []
    environments = store.environments()
    for stage in STAGES:
        path, seen = store.path(stage), set()
        dirty: Counter[str] = Counter()
        for number, line in store.lines(stage):
            try:
                record = record_of(line, environments)
            except ValueError as error:
                found.append(f"{path}, line {number}: {error}")
                continue
            if record.key in seen:
                found.append(f"{path}, line {number}: {record.key} occurs twice")
            seen.add(record.key)
            here = record.environment
            if here.is_dirty and not (store.folder / f"{here.patch}.patch").exists():
                dirty[str(here.revision)] += 1
        found += [
            f"{path}: {count} records of {revision}, without its patch"
            for revision, count in dirty.items()
        ]
    return found


def export(found: Sequence[Store], file: TextIO) -> None:
    """Write the records of some stores as CSV."""
    rows = []
    for store in found:
        for stage in STAGES:
            for record in store.read(stage):
                about: dict[str, Any] = {"folder": store.folder.as_posix(), "file": stage}
                about |= {name: getattr(record, name) for name in _SHOWN}
                about |= {"revision": record.environment.revision, "cpu": record.environment.cpu}
                settings = {f"settings.{k}": _cell(v) for k, v in record.settings.items()}
                rows.append(about | settings)
    columns = list({name: None for row in rows for name in row})
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


_SHOWN = ("experiment", "method", "setting", "seed", "score", "seconds")


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _counts(records: Sequence[Record]) -> tuple[int, int, int, int, str]:
    return (
        len(records),
        len({record.setting for record in records}),
        len({record.seed for record in records}),
        sum(record.environment.is_dirty for record in records),
        "; ".join(sorted({record.environment.cpu for record in records})),
    )
