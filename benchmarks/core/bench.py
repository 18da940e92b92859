"""`losse bench core`: this library against the paper's update, interleaved on one core.

A worker process with one thread measures one section after the other. Each leaves a record, which
takes the place of an earlier one; the table and the figure show all records.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from benchmarks.display import live_line, pin, show
from benchmarks.measures import Outcome, table_of
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.workers import Failure, run_jobs

REQUIRED = ("jax", "gymnasium")  # of the measuring process

Section = Literal[
    "update-30",
    "predict-30",
    "exact-30",
    "batch-300",
    "growth",
    "recommended",
    "kernels",
    "startup",
]
SECTIONS: tuple[Section, ...] = get_args(Section)


@dataclass(frozen=True)
class Settings:
    """Measure this library against the paper's update, interleaved on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: every section in a few minutes, short runs; full: the published figures."""

    sections: tuple[Section, ...] = SECTIONS
    """Which sections to run, in this order; none draws the table of all records again."""

    env_id: str = "Hopper-v5"
    """Gymnasium MuJoCo environment whose random-policy transitions are learned."""

    seed: int = 0
    """Seed of the transitions and of the projections."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> None:
    """Measure what the settings ask for, then show everything measured so far."""
    store = Store(settings.folder)
    for section, result in run_jobs(partial(measure, settings), settings.sections, workers=1):
        if isinstance(result, Failure):
            raise RuntimeError(f"{section} failed: {result.reason}\n{result.trace}")
        store.put(result)
        print(f"{section}: {result.seconds:.0f} s on core {result.details['core']}", flush=True)
    report(store.read(), settings.folder)


def measure(settings: Settings, section: str) -> Record:
    """Run one section and make its record."""
    from benchmarks.core.context import Bench

    core = pin(settings.core)
    begin = time.perf_counter()
    module: Any = import_module(f"benchmarks.core.sections.{section.replace('-', '_')}")
    with live_line(section) as step:
        outcome: Outcome = module.run(Bench(settings, step))
    figures = [m.ratio for m in outcome.measures if m.ratio is not None]
    return Record(
        experiment="bench",
        method="losse",
        setting=section,
        seed=settings.seed,
        score=figures[0] if figures else float("nan"),
        curve=outcome.curve,
        settings={"preset": settings.preset, "env_id": settings.env_id},
        seconds=time.perf_counter() - begin,
        details=outcome.details
        | {"core": core, "measures": [m.as_dict() for m in outcome.measures]},
    )


def report(records: Sequence[Record], folder: Path) -> None:
    """Write and show the table of all records, and draw the figure of growth."""
    found = {str(record.setting): record for record in records}
    measures = [m for name in SECTIONS if name in found for m in found[name].details["measures"]]
    text = table_of(measures).markdown() + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    if "growth" in found:
        from benchmarks.core.sections.growth import draw

        draw(found["growth"].details, folder / "growth.png")
    show(text)
    print(f"Records and table: {folder}")
