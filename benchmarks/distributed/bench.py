"""`losse bench distributed`: what many workers gain, and what a sync costs.

One record is written per kind of memory, in the place of an earlier one with the same options; the
tables are drawn from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.display import live_line, show
from benchmarks.distributed import report
from losse.runs.record import Record
from losse.runs.store import Store

REQUIRED = ("ray",)
ROWS = {"quick": {"square": 40_960, "packed": 8_192}, "full": {"square": 409_600, "packed": 81_920}}


@dataclass(frozen=True)
class Settings:
    """Measure learning on a local Ray, and what travels at a sync."""

    preset: Literal["quick", "full"] = "full"
    """quick: 40,960 rows (packed memory: 8,192); full: ten times as many."""

    memories: tuple[Literal["square", "packed"], ...] = ("square", "packed")
    """square: 3,630 features; packed: 8,470, of whose memory one triangle is kept."""

    workers: tuple[int, ...] = (1, 2)
    """Numbers of workers."""

    seed: int = 0
    """Seed of the rows and the grids."""

    results: Path = Path("results/bench/distributed")
    """Folder of the records and the tables; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> list[Record]:
    """Measure every kind of memory, then draw the tables of all records."""
    from benchmarks.distributed.measure import Job, measure

    store = Store(settings.folder)
    for memory in settings.memories:
        rows = ROWS[settings.preset][memory]
        job = Job(memory, rows, settings.workers, settings.preset, settings.seed)
        with live_line(memory) as say:
            record = measure(job, say)
        store.put(record)
        print(f"{memory}: {record.seconds:.0f} s", flush=True)
    records = store.read()
    text = report.document(records)
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    show(text)
    print(f"Records and tables: {settings.folder}")
    return records
