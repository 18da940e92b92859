"""Who measures?  The process that `core` starts: pinned to one core, one section after another."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import report
from benchmarks.context import Bench
from benchmarks.core import SECTIONS, Settings
from benchmarks.sections import growth
from losse.runs.record import Record
from losse.runs.store import read_records, write_record


def parse(fields: dict[str, Any]) -> Settings:
    """Settings from what `core` hands over."""
    return Settings(
        **fields | {"sections": tuple(fields["sections"]), "results": Path(fields["results"])}
    )


def pin(core: int | None) -> int | None:
    """Stay on one core, where the system allows it; its number."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    chosen = max(os.sched_getaffinity(0)) if core is None else core
    os.sched_setaffinity(0, {chosen})
    return chosen


def measure(settings: Settings, section: str, progress: Progress) -> Record:
    """Run one section and write its record."""
    task = progress.add_task(section, total=None, detail="")

    def step(detail: str) -> None:
        progress.update(task, detail=detail)
        progress.refresh()

    begin = time.perf_counter()
    module = import_module(f"benchmarks.sections.{section.replace('-', '_')}")
    outcome: report.Outcome = module.run(Bench(settings, step))
    figures = [m.ratio for m in outcome.measures if m.ratio is not None]
    record = Record(
        experiment="bench",
        method="losse",
        setting=section,
        seed=settings.seed,
        score=figures[0] if figures else float("nan"),
        curve=outcome.curve,
        settings=asdict(settings),
        seconds=time.perf_counter() - begin,
        details=outcome.details | {"measures": [m.as_dict() for m in outcome.measures]},
    )
    write_record(record, settings.folder)
    progress.update(task, total=1, completed=1, detail=f"{record.seconds:.0f} s")
    progress.refresh()
    return record


def show(settings: Settings, console: Console) -> None:
    """Draw the table and the figure from all records in the results folder."""
    records = {str(r.setting): r for r in read_records(settings.folder)}
    ordered = [records[name] for name in SECTIONS if name in records]
    rows = report.lines(m for record in ordered for m in record.details["measures"])
    table = Table(*report.HEADER)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if "growth" in records:
        growth.draw(records["growth"].details, settings.folder / "growth.png")
    path = settings.folder / "table.md"
    path.write_text(report.markdown(rows), encoding="utf-8")
    console.print(f"Records and table: {settings.folder}")


def main() -> None:
    """Measure what the settings ask for, then show everything measured so far."""
    settings = parse(json.loads(sys.argv[1]))
    # A redirected table keeps its lines whole.
    console = Console(width=None if sys.stdout.isatty() else 160)
    core = pin(settings.core)
    console.print(f"{settings.preset} run on core {core if core is not None else '(not pinned)'}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    # No refresh thread: it would share the core with what is being measured.
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        for section in settings.sections:
            measure(settings, section, progress)
    show(settings, console)


if __name__ == "__main__":
    main()
