"""Tables and figure of `losse bench dyna`, drawn from its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.dyna.profile import ACTING, MODEL, PARTS, TRAINING, Seconds, share, total
from benchmarks.measures import Measure, duration, table_of
from losse.paper.control.discrete_control import METHODS
from losse.paper.control.tasks import TASKS
from losse.runs.record import Record
from losse.runs.table import Table

LARGEST_SHARE = 0.25
TIMED = "losse/Gridworld-v0"
"""The task whose whole run should take less than `MOST_SECONDS`."""
MOST_SECONDS = 60
ABOUT = """\
SBX's DQN at the settings of `losse reproduce discrete-control`, each run in a process of its own,
on one core with one thread. Seconds by the clock, and on the processor in brackets. Shares are of
the training: imports, the setup and evaluations do not count. JAX and Numba compile or load what
they need in the first call of a part; in the second half of a run nothing is compiled any more.
Drawn from the records in this folder by `losse bench dyna`.
"""
COLUMNS = {"parts": "", "first_calls": ", first call", "second_half": ", second half"}
"""What a record has of each part, and what it is called beside the model's name."""


def line(record: Record) -> str:
    """One run in one line."""
    title = TASKS[str(record.setting)].title
    return f"{title}, {record.method}: {record.seconds:.1f} s, the model's share {record.score:.1%}"


def table(records: Iterable[Record]) -> str:
    """Everything measured, as Markdown."""
    found = _ordered(records)
    parts = ["# Time of Dyna\n", ABOUT]
    measures = judge(found)
    if measures:
        promises = table_of(measure.as_dict() for measure in measures)
        parts.append(f"## Targets\n\n{promises.markdown()}\n")
    parts.append("## Runs\n\n" + _runs(found).markdown() + "\n")
    for env, task in TASKS.items():
        own = [record for record in found if record.setting == env]
        if own:
            parts.append(f"## {task.title}\n\n" + _parts(own).markdown() + "\n")
    return "\n".join(parts)


def judge(records: Iterable[Record]) -> list[Measure]:
    """Losse beside its targets: its share of each run, and the time of a whole one."""
    measures = []
    for record in records:
        if record.method != "losse":
            continue
        title, steps = TASKS[str(record.setting)].title, record.settings["steps"]
        for name, key, target in (
            ("", "parts", f"<= {LARGEST_SHARE}"),
            (", second half", "second_half", ""),
        ):
            parts = record.details[key]
            measures.append(
                Measure(
                    f"{title}{name}, the model's share of the training",
                    duration(total(parts, MODEL)),
                    duration(total(parts, TRAINING)),
                    share(parts),
                    share(parts, 1),
                    target,
                )
            )
        if record.setting == TIMED and steps == TASKS[TIMED].steps:
            parts = record.details["parts"]
            measures.append(
                Measure(
                    f"{title}, the whole run of {steps:,} steps, seconds",
                    duration(total(parts)),
                    duration(MOST_SECONDS),
                    total(parts),
                    total(parts, column=1),
                    f"<= {MOST_SECONDS}",
                )
            )
    return measures


def _ordered(records: Iterable[Record]) -> list[Record]:
    tasks = list(TASKS)
    return sorted(
        records, key=lambda r: (tasks.index(str(r.setting)), METHODS.index(r.method), r.seed)
    )


def _runs(records: Sequence[Record]) -> Table:
    """Each run in one row."""
    rows = []
    for record in records:
        whole, second = record.details["parts"], record.details["second_half"]
        steps = record.settings["steps"]
        rows.append(
            (
                TASKS[str(record.setting)].title,
                record.method,
                f"{steps:,}",
                f"{total(whole):.1f} ({total(whole, column=1):.1f})",
                f"{total(whole, TRAINING):.1f} ({total(whole, TRAINING, 1):.1f})",
                f"{steps / 2 / total(second, TRAINING):,.0f}",
                f"{share(whole):.1%}",
                f"{share(second):.1%}",
            )
        )
    columns = (
        "task",
        "model",
        "steps",
        "whole run",
        "training",
        "steps per second, second half",
        "model's share",
        "second half",
    )
    return Table(columns, rows)


def _parts(records: Sequence[Record]) -> Table:
    """Seconds of each part, and its share of the training; some columns for each model."""
    rows = []
    for name in PARTS:
        cells = [_cell(name, record.details[key]) for record in records for key in COLUMNS]
        rows.append((name, *cells))
    titles = [record.method + what for record in records for what in COLUMNS.values()]
    return Table(("part", *titles), rows)


def _cell(name: str, parts: Mapping[str, Seconds]) -> str:
    if name not in parts:
        return ""
    wall, cpu = parts[name]
    text = f"{wall:.2f} ({cpu:.2f})"
    if name in TRAINING and ACTING in parts:  # else they are first calls, which are no whole
        text += f", {wall / total(parts, TRAINING):.1%}"
    return text


def draw(records: Iterable[Record], path: Path) -> None:
    """Seconds of all parts as bars, one for each run."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from losse.runs.style import RC, style_of

    found = _ordered(records)[::-1]
    with mpl.rc_context(RC):
        figure = Figure(figsize=(8.4, 1.6 + 0.45 * len(found)), layout="constrained")
        axes = figure.subplots()
        names = [f"{TASKS[str(r.setting)].title}, {style_of(r.method).label}" for r in found]
        ends = [0.0] * len(found)
        shades = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
        for name, shade in zip(PARTS, shades, strict=False):
            widths = [r.details["parts"].get(name, (0.0, 0.0))[0] for r in found]
            bars = axes.barh(names, widths, left=ends, color=shade, label=name)
            if name in MODEL:
                for bar in bars:
                    bar.set(hatch="//", edgecolor="white")
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        axes.set(xlabel="seconds by the clock (hatched: the world model)")
        figure.legend(loc="outside lower center", ncols=3, fontsize="small")
        figure.savefig(path, dpi=150)
