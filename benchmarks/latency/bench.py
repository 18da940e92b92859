"""`losse bench latency`: the time of single calls of a control loop, to the slowest of them.

Every model runs in a process of its own, on one core with one thread, for the widest instruction
set of the machine and for AVX2. One record is written per model and instruction set, in the place
of an earlier one; the table and the histograms are drawn from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.display import show
from benchmarks.latency import report
from benchmarks.latency.loop import Job, Model, measure
from benchmarks.targets import TARGETS, Target, available, compiled_for
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.workers import Failure, run_jobs

REQUIRED = ("gymnasium",)
ROWS = {"quick": 1_000, "full": 20_000}


@dataclass(frozen=True)
class Settings:
    """Measure single calls of a control loop with 12 states and 4 actions."""

    preset: Literal["quick", "full"] = "full"
    """quick: 1,000 rows; full: 20,000."""

    models: tuple[Model, ...] = ("grids", "recommended")
    """grids: the paper's 30 grids and its sparse update; recommended: FTLRegressor()."""

    targets: tuple[Target, ...] = TARGETS
    """Instruction sets to compile for, where the machine has them."""

    seed: int = 0
    """Seed of the plant and of the models."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench/latency")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> list[Record]:
    """Measure every model for every target, then draw the table of all records."""
    store = Store(settings.folder)
    rows = ROWS[settings.preset]
    jobs = [Job(m, rows, settings.preset, settings.seed, settings.core) for m in settings.models]
    for target in available(settings.targets):
        with compiled_for(target):
            for job, result in run_jobs(measure, jobs, workers=1):
                if isinstance(result, Failure):
                    raise RuntimeError(f"{job} failed: {result.reason}\n{result.trace}")
                store.put(result)
                print(f"{job.model}, {target}: {result.seconds:.0f} s", flush=True)
    records = store.read()
    text = report.table(records)
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    report.draw(records, settings.folder / "histogram.png")
    show(text)
    print(f"Records, table and figure: {settings.folder}")
    return records
