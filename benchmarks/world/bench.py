"""`losse bench world`: time that world models take to learn and to imagine.

All models take turns in one process, on one core with one thread. One record is written per model
and setting, in the place of an earlier one; the table and the figure are drawn from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.display import show
from benchmarks.world import race, report
from losse.runs.store import Store
from losse.runs.workers import Failure, run_jobs
from losse.world.registry import METHODS

REQUIRED = ("jax", "flax", "gymnasium")


@dataclass(frozen=True)
class Settings:
    """Measure updates and imagined steps of all world models, interleaved on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: few sizes and repeats; full: the published figures."""

    methods: tuple[str, ...] = METHODS
    """Which models to measure, with the paper's settings."""

    settings: tuple[race.Setting, ...] = race.SETTINGS
    """The paper's two: 25 transitions per update and 30 grids or 3 x 32 units; 250, and 300 grids
    (5.5 GB) or 4 x 400 units."""

    seed: int = 0
    """Seed of the transitions and of the models."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench/world")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise ValueError(f"methods has {method!r}; choose from: {', '.join(METHODS)}")

    @property
    def folder(self) -> Path:
        """Where this run writes."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> None:
    """Measure in a process of its own, then draw the table of all records."""
    store = Store(settings.folder)
    measure = partial(race.measure, settings.preset, settings.methods, settings.seed, settings.core)
    for setting, result in run_jobs(measure, settings.settings, workers=1):
        if isinstance(result, Failure):
            raise RuntimeError(f"{setting} failed: {result.reason}\n{result.trace}")
        for record in result:
            store.put(record)
    records = store.read()
    text = report.table(records)
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    report.draw(records, settings.folder / "growth.png")
    show(text)
    print(f"Records, table and figure: {settings.folder}")
