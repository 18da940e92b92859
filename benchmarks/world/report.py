"""Tables and figure of `losse bench world`, drawn from its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measures import Measure, duration, table_of
from benchmarks.world.race import SETTINGS
from losse.runs.record import Record
from losse.runs.table import Table
from losse.world.registry import METHODS

GROWTH_FROM = 2_500
"""Transitions from which the memories' pages have all been touched."""


def table(records: Iterable[Record]) -> str:
    """Everything measured, as Markdown."""
    found = {(str(r.setting), r.method): r for r in records}
    parts = ["# Time of world models\n", _about(found)]
    measures = judge(found)
    if measures:
        promises = table_of(measure.as_dict() for measure in measures)
        parts.append(f"## Targets\n\n{promises.markdown()}\n")
    for setting in SETTINGS:
        own = [found[setting, m] for m in METHODS if (setting, m) in found]
        if own:
            parts.append(_updates(setting, own))
            parts.append(_steps(own))
    return "\n".join(parts)


def judge(found: dict[tuple[str, str], Record]) -> list[Measure]:
    """Losse beside its targets at the discrete setting."""
    losse, online = found.get(("discrete", "losse")), found.get(("discrete", "online"))
    if losse is None or online is None:
        return []
    sizes, batch = losse.settings["sizes"], losse.settings["batch"]
    ours, theirs = losse.details["updates"], online.details["updates"]
    steps = losse.details["steps"]["512"]
    measures = [
        Measure(
            f"update of {batch} after {n:,} transitions, Losse / online network",
            duration(batch * a["median_seconds_per_row"]),
            duration(batch * b["median_seconds_per_row"]),
            a["median_seconds_per_row"] / b["median_seconds_per_row"],
            a["mean_cpu_seconds_per_row"] / b["mean_cpu_seconds_per_row"],
            "<= 0.4",
        )
        for n, a, b in zip(sizes, ours, theirs, strict=True)
    ]
    if GROWTH_FROM in sizes[:-1]:
        measures.append(_growth(sizes, batch, ours, theirs))
    taken = 512 * steps["median_seconds_per_row"]
    measures.append(
        Measure(
            "imagination of 512 states, Losse, milliseconds",
            duration(taken),
            "1 ms",
            1e3 * taken,
            1e3 * 512 * steps["mean_cpu_seconds_per_row"],
            "<= 1",
        )
    )
    return measures


def _growth(sizes: Sequence[int], batch: int, ours: Any, theirs: Any) -> Measure:
    """Cost at the last size over that at an early one, both relative to the online network's.

    That costs the same at every size, so the ratio cancels the machine's own drift.
    """
    first, last = sizes.index(GROWTH_FROM), -1

    def relative(key: str) -> float:
        return (ours[last][key] / theirs[last][key]) / (ours[first][key] / theirs[first][key])

    key = "median_seconds_per_row"
    return Measure(
        f"update of Losse after {sizes[last]:,} transitions / after {GROWTH_FROM:,}",
        duration(batch * ours[last][key]),
        duration(batch * ours[first][key]),
        relative(key),
        relative("mean_cpu_seconds_per_row"),
        "<= 1.2",
    )


def _about(found: dict[tuple[str, str], Record]) -> str:
    texts = []
    for setting in SETTINGS:
        record = next((r for (s, _), r in found.items() if s == setting), None)
        if record is not None:
            about = record.settings
            texts.append(
                f"- {setting}: {about['env_id']} under a random policy, updates of "
                f"{about['batch']} transitions, {about['n_grids']} grids; {about['updates']} "
                "timed updates at each size\n"
            )
    return (
        "All models take turns in one process, on one core with one thread. They reach each size "
        "in one update that is not timed (online and si: with the last 256). Median wall times, "
        "and mean processor times in brackets. Drawn from the records in this folder by `losse "
        "bench world`.\n\n" + "".join(texts)
    )


def _updates(setting: str, own: Sequence[Record]) -> str:
    sizes = own[0].settings["sizes"]
    batch = own[0].settings["batch"]
    rows = []
    for record in own:
        cells = [
            f"{1e3 * batch * u['median_seconds_per_row']:.3g} "
            f"({1e3 * batch * u['mean_cpu_seconds_per_row']:.3g})"
            for u in record.details["updates"]
        ]
        rows.append((record.method, *cells))
    columns = ("model", *(f"{n:,}" for n in sizes))
    title = f"## {setting.capitalize()}: milliseconds per update, by transitions learned before\n\n"
    return f"{title}{Table(columns, rows).markdown()}\n"


def _steps(own: Sequence[Record]) -> str:
    counts = list(own[0].details["steps"])
    rows = []
    for record in own:
        steps = record.details["steps"]
        rates = [1 / steps[n]["median_seconds_per_row"] for n in counts]
        rows.append((record.method, *(f"{rate:,.3g}" for rate in rates)))
    table = Table(("model", *(f"{int(n):,}" for n in counts)), rows)
    title = "Imagined steps per second, with so many states side by side:\n\n"
    return f"{title}{table.markdown()}\n"


def draw(records: Iterable[Record], path: Path) -> None:
    """Processor time per update against the transitions learned before, as a figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from losse.runs.style import RC, style_of

    found = {(str(record.setting), record.method): record for record in records}
    shown = [s for s in SETTINGS if any(setting == s for setting, _ in found)]
    with mpl.rc_context(RC):
        figure = Figure(figsize=(4.2 * len(shown), 3.4), layout="constrained")
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, setting in zip(panels, shown, strict=True):
            for record in (found[setting, m] for m in METHODS if (setting, m) in found):
                per_row = [u["mean_cpu_seconds_per_row"] for u in record.details["updates"]]
                taken = [1e3 * record.settings["batch"] * seconds for seconds in per_row]
                axes.plot(record.settings["sizes"], taken, **style_of(record.method).marked())
            axes.set(
                title=setting,
                xlabel="transitions learned before",
                ylabel="processor time per update (ms)",
                xscale="log",
                yscale="log",
            )
        panels[0].legend(fontsize="small")
        figure.savefig(path, dpi=150)
