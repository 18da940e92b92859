"""Tables and figure of `losse bench dyna`, drawn from its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.dyna.profile import ACTING, MODEL, OTHERS, PARTS, TRAINING, Seconds, share, total
from benchmarks.measures import Measure, duration, table_of
from losse.dyna.models import METHODS
from losse.paper.control import continuous_control, tasks
from losse.runs.record import Record
from losse.runs.table import Table

TASKS = tasks.TASKS | continuous_control.TASKS
LARGEST_SHARE = 0.25
LARGEST_MULTIPLE = 0.25
"""With SAC, the model's time should be at most that much of everything else in training."""
NETWORK = "full-replay"
"""The method whose time the model's should be below, with SAC."""
TIMED = "losse/Gridworld-v0"
"""The task whose whole run should take less than `MOST_SECONDS`."""
MOST_SECONDS = 60
ABOUT = """\
SBX's DQN at the settings of `losse reproduce discrete-control`, and its SAC at those of `losse
reproduce continuous-control`. Each run has a process of its own, on one core with one thread.
Seconds by the clock, and on the processor in brackets. Shares are of the training: imports, the
setup and evaluations do not count. JAX and Numba compile or load what they need in the first call
of a part; in the second half of a run nothing is compiled any more. Drawn from the records in this
folder by `losse bench dyna`.
"""
COLUMNS = {"parts": "", "first_calls": ", first call", "second_half": ", second half"}
"""What a record has of each part, and what it is called beside the model's name."""


def line(record: Record) -> str:
    """One run in one line."""
    share_of = f"the model's share {record.score:.1%}"
    return f"{_title(record)}, {record.method}: {record.seconds:.1f} s, {share_of}"


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
    """Losse beside its targets: its part of each run, and the time of a whole one."""
    found = list(records)
    measures = []
    for record in found:
        if record.method != "losse":
            continue
        if str(record.setting) in continuous_control.TASKS:
            measures += _beside_sac(record, found)
        else:
            measures += _of_training(record)
        if record.setting == TIMED and record.settings["steps"] == TASKS[TIMED].steps:
            parts = record.details["parts"]
            measures.append(
                Measure(
                    f"{_title(record)}, the whole run of {TASKS[TIMED].steps:,} steps, seconds",
                    duration(total(parts)),
                    duration(MOST_SECONDS),
                    total(parts),
                    total(parts, column=1),
                    f"<= {MOST_SECONDS}",
                )
            )
    return measures


def _of_training(record: Record) -> list[Measure]:
    """The model's share of a training."""
    measures = []
    for name, key, target in (
        ("", "parts", f"<= {LARGEST_SHARE}"),
        (", second half", "second_half", ""),
    ):
        parts = record.details[key]
        measures.append(
            Measure(
                f"{_title(record)}{name}, the model's share of the training",
                duration(total(parts, MODEL)),
                duration(total(parts, TRAINING)),
                share(parts),
                share(parts, 1),
                target,
            )
        )
    return measures


def _beside_sac(record: Record, records: Sequence[Record]) -> list[Measure]:
    """The model's time beside that of the agent, and beside the network's in the same run."""
    title, own = _title(record), record.details["parts"]
    measures = [
        _ratio(f"{title}, the model beside the agent", own, own, OTHERS, f"<= {LARGEST_MULTIPLE}")
    ]
    same = record.setting, record.settings["steps"], record.seed
    for other in records:
        if (other.setting, other.settings["steps"], other.seed) == same and other.method == NETWORK:
            parts = other.details["parts"]
            measures.append(
                _ratio(f"{title}, the model beside the network", own, parts, MODEL, "<= 1")
            )
    return measures


def _ratio(
    name: str,
    parts: Mapping[str, Seconds],
    others: Mapping[str, Seconds],
    names: tuple[str, ...],
    target: str,
) -> Measure:
    """The model's time over some parts of the same or another run."""
    wall, cpu = (total(parts, MODEL, k) / total(others, names, k) for k in (0, 1))
    seconds = duration(total(parts, MODEL)), duration(total(others, names))
    return Measure(name, *seconds, wall, cpu, target)


def _title(record: Record) -> str:
    return TASKS[str(record.setting)].title


def _ordered(records: Iterable[Record]) -> list[Record]:
    envs = list(TASKS)
    return sorted(
        records, key=lambda r: (envs.index(str(r.setting)), METHODS.index(r.method), r.seed)
    )


def _runs(records: Sequence[Record]) -> Table:
    """Each run in one row."""
    rows = []
    for record in records:
        whole, second = record.details["parts"], record.details["second_half"]
        steps = record.settings["steps"]
        rows.append(
            (
                _title(record),
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
        names = [f"{_title(r)}, {style_of(r.method).label}" for r in found]
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
