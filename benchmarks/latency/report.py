"""Table and figure of `losse bench latency`, drawn from its records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.latency.loop import CALLS, EDGES, HORIZON, ROLLOUTS
from benchmarks.measures import duration
from losse.runs.record import Record
from losse.runs.table import Table

LONGEST = 0.005
"""Seconds that 99.9 % of the calls should not exceed."""
ABOUT = f"""\
A control loop over a made-up plant of 12 states and 4 actions, one row at a time, on one core with
one thread. Imagination is {ROLLOUTS} rollouts of {HORIZON} steps, after every tenth row. Times by
the clock, and of the processor in brackets: on a machine that others use too, the former contain
their turns. "p99.9 met" says whether both are at most {1e3 * LONGEST:g} ms. Drawn from the records
in this folder by `losse bench latency`.
"""


def table(records: Iterable[Record]) -> str:
    """Everything measured, as Markdown."""
    rows = []
    for record in ordered(records):
        for name, what in CALLS.items():
            call = record.details["calls"][name]
            wall, cpu = call["wall"], call["cpu"]
            cells = [f"{duration(wall[q])} ({duration(cpu[q])})" for q in wall]
            met = max(wall["p99.9"], cpu["p99.9"]) <= LONGEST
            about = (record.settings["model"], record.settings["instructions"], what)
            rows.append((*about, f"{call['calls']:,}", *cells, "yes" if met else "no"))
    columns = (
        "model", "instructions", "call", "calls", "p50", "p99", "p99.9", "max", "p99.9 met"
    )  # fmt: skip
    return f"# Time of single calls\n\n{ABOUT}\n{Table(columns, rows).markdown()}\n"


def ordered(records: Iterable[Record]) -> list[Record]:
    """Records by model, the widest instruction set first."""
    names = ("AVX-512", "AVX2", "NEON", "SSE")
    return sorted(
        records, key=lambda r: (r.settings["model"], names.index(r.settings["instructions"]))
    )


def draw(records: Iterable[Record], path: Path) -> None:
    """Histograms of the calls' times by the clock, one panel for each kind of call."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from losse.runs.style import RC

    found = ordered(records)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(8.4, 5.6), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True).ravel()
        for axes, (name, what) in zip(panels, CALLS.items(), strict=True):
            for record in found:
                counts = record.details["calls"][name]["histogram"]
                axes.stairs(counts, 1e3 * EDGES, label=str(record.setting))
            axes.axvline(1e3 * LONGEST, color="0.5", linestyle=":")
            axes.set(title=what, xscale="log", yscale="log", ylabel="calls", ylim=(0.7, None))
        for axes in panels[2:]:
            axes.set(xlabel="milliseconds")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        figure.savefig(path, dpi=150)
