"""Tables of `losse bench distributed`, drawn from its records."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.distributed.measure import on_paper
from benchmarks.measures import duration
from losse.runs.record import Record
from losse.runs.table import Table

PAPER = 1, 2, 8, 64
PAPER_ROWS = 10_000_000
ABOUT = """\
Made-up transitions of a plant of 12 states and 4 actions; the paper's grids, 30 (square memory) and
70 (packed). `alone` is one process without Ray. `fit` includes the freezing of the encoder on the
first block and the merging. Efficiency is the rate of n workers over n times that of one process
alone. Workers cannot be faster than the cores that they share. Fits are timed by the clock, and
suffer from whoever else uses the machine; all else is time of the processor. Drawn from the records
in this folder by `losse bench distributed`.
"""


def document(records: Iterable[Record]) -> str:
    """Everything measured, as Markdown."""
    found = sorted(records, key=lambda record: record.details["features"])
    about = ", ".join(sorted({f"{r.environment.cpu}, {r.settings['instructions']}" for r in found}))
    parts = [
        ("Whole fits", fits(found)),
        (f"On paper: {PAPER_ROWS:,} rows, by the parts above", paper(found)),
        ("Copies and merging of a model", models(found)),
        ("A sync after some rows of one worker", syncs(found)),
    ]
    tables = "\n".join(f"## {title}\n\n{table.markdown()}\n" for title, table in parts)
    return f"# Learning on a cluster\n\n{ABOUT}\nMachine: {about}.\n\n{tables}"


def fits(records: Iterable[Record]) -> Table:
    """Rows per second and efficiency of fits that were done."""
    rows = []
    for record in records:
        details, n = record.details, record.settings["rows"]
        about = (record.setting, f"{details['features']:,}", f"{n:,}")
        rows.append((*about, "alone", record.settings["cores"], f"{record.score:,.0f}", "1.00"))
        for name, seconds in details.items():
            if name.startswith("fit"):
                workers, rate = int(name[3:]), n / seconds
                share = rate / workers / record.score
                cells = (str(workers), record.settings["cores"], f"{rate:,.0f}", f"{share:.2f}")
                rows.append((*about, *cells))
    names = "memory", "features", "rows", "workers", "cores", "rows per second", "efficiency"
    return Table(names, rows)


def paper(records: Iterable[Record]) -> Table:
    """Times and efficiency of fits that would be."""
    rows = []
    for record in records:
        alone = PAPER_ROWS * record.details["row"]
        for n, seconds in on_paper(record.details, PAPER_ROWS, PAPER).items():
            rate = f"{PAPER_ROWS / seconds:,.0f}"
            rows.append((record.setting, n, duration(seconds), rate, f"{alone / seconds / n:.2f}"))
    return Table(("memory", "workers", "time", "rows per second", "efficiency"), rows)


def models(records: Iterable[Record]) -> Table:
    """Costs of a model that has learned all rows."""
    rows = [
        (
            record.setting,
            f"{record.details['bytes'] / 1e6:.1f} MB",
            *(_time(record.details[name]) for name in ("write", "read", "merge", "solve")),
            f"{(record.details['merge'] + record.details['solve']) / record.details['row']:,.0f}",
        )
        for record in records
    ]
    names = "memory", "travels as", "write", "read", "add to another", "solve"
    return Table((*names, "rows learned in the time of adding and solving"), rows)


def syncs(records: Iterable[Record]) -> Table:
    """Bytes and times of increments."""
    rows = []
    for record in records:
        for sync in record.details["increments"]:
            size = [f"{sync[name] / 1e6:.3g} MB" for name in ("sums", "themselves")]
            times = [duration(sync[name]) for name in ("learn", "merge")]
            rows.append((record.setting, f"{sync['rows']:,}", *size, *times))
    names = "memory", "rows", "sums", "rows themselves", "learn", "add and solve"
    return Table(names, rows)


def _time(seconds: float) -> str:
    """A duration; none, where it was a difference within the scatter of another."""
    return duration(seconds) if seconds else "less than solving varies"
