"""`losse bench core`: this library against the paper's update, interleaved on one core.

A worker process with one thread measures one section after the other, for the widest instruction
set of the machine and for AVX2. Each leaves a record, which takes the place of an earlier one; the
tables and the figure show all records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from benchmarks.display import live_line, pin, show
from benchmarks.measures import Outcome, table_of
from benchmarks.targets import ORDER, TARGETS, Target, available, compiled_for
from losse._kernels.block import INSTRUCTIONS
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.table import Table
from losse.runs.workers import Failure, run_jobs

REQUIRED = ("jax", "gymnasium")  # of the measuring process

Section = Literal[
    "update-30",
    "predict-30",
    "exact-30",
    "batch-300",
    "growth",
    "recommended",
    "uncertainty",
    "kernels",
    "startup",
    "threads",
]
SECTIONS: tuple[Section, ...] = get_args(Section)
ABOUT = """\
# Speed of the core

Beside a plain implementation of the paper's update, interleaved on one core with one thread, for
each instruction set that the kernels were compiled for. Speeds are ratios of median times by the
clock, with those of processor times in brackets. Drawn from the records in this folder by
`losse bench core`.
"""


@dataclass(frozen=True)
class Settings:
    """Measure this library against the paper's update, interleaved on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: every section in a few minutes, short runs; full: the published figures."""

    sections: tuple[Section, ...] = SECTIONS
    """Which sections to run, in this order; none draws the table of all records again."""

    targets: tuple[Target, ...] = TARGETS
    """Instruction sets to compile for, where the machine has them."""

    env_id: str = "Hopper-v5"
    """Gymnasium MuJoCo environment whose random-policy transitions are learned."""

    seed: int = 0
    """Seed of the transitions and of the projections."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    pages: tuple[Path, ...] = ()
    """Pages of the documentation whose tables are renewed, such as README.md and docs/speed.md,
    from the records of all machines in `results` and below."""

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> None:
    """Measure what the settings ask for, then show everything measured so far."""
    store = Store(settings.folder)
    for target in available(settings.targets) if settings.sections else ():
        with compiled_for(target):
            for _, result in run_jobs(partial(measure, settings), settings.sections, workers=1):
                if isinstance(result, Failure):
                    raise RuntimeError(f"a section failed: {result.reason}\n{result.trace}")
                store.put(result)
                core = result.details["core"]
                print(f"{result.setting}: {result.seconds:.0f} s on core {core}", flush=True)
    report(store.read(), settings.folder)
    if settings.pages:
        from benchmarks.core.page import renew

        renew(settings.pages, settings.results)


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
        setting=f"{section}, {INSTRUCTIONS}",
        seed=settings.seed,
        score=figures[0] if figures else float("nan"),
        curve=outcome.curve,
        settings={
            "preset": settings.preset,
            "env_id": settings.env_id,
            "section": section,
            "instructions": INSTRUCTIONS,
        },
        seconds=time.perf_counter() - begin,
        details=outcome.details
        | {"core": core, "measures": [m.as_dict() for m in outcome.measures]},
    )


def report(records: Sequence[Record], folder: Path) -> None:
    """Write and show the table of all records, and draw the figure of growth."""
    found = {(r.settings["instructions"], r.settings["section"]): r for r in records}
    sets = [name for name in ORDER if any(name == instructions for instructions, _ in found)]
    measures = {
        name: [
            measure
            for section in SECTIONS
            if (name, section) in found
            for measure in found[name, section].details["measures"]
        ]
        for name in sets
    }
    parts = [ABOUT, beside(measures).markdown()]
    for name in sets:
        parts.append(f"## {name}\n\n{table_of(measures[name]).markdown()}")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    grown = next((found[name, "growth"] for name in sets if (name, "growth") in found), None)
    if grown is not None:
        from benchmarks.core.sections.growth import draw

        draw(grown.details, folder / "growth.png")
    show(text)
    print(f"Records and table: {folder}")


def beside(measures: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Ratios of all measures, one column for each instruction set."""
    names = dict.fromkeys(m["name"] for own in measures.values() for m in own)
    rows = []
    for name in names:
        cells = {key: m for key, own in measures.items() for m in own if m["name"] == name}
        if all(m["ratio"] is None for m in cells.values()):
            continue
        ratios = [_ratio(cells.get(key)) for key in measures]
        rows.append((name, *ratios, next(iter(cells.values()))["target"]))
    return Table(("ratio", *measures, "target"), rows)


def _ratio(measure: Mapping[str, Any] | None) -> str:
    if measure is None or measure["ratio"] is None:
        return ""
    total = measure["total_ratio"]
    return f"{measure['ratio']:.3g}" + ("" if total is None else f" ({total:.3g})")
