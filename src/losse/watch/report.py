"""A report of runs in one HTML file: figures, tables, settings and versions, to send to others."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from losse.runs.style import RC, style_of
from losse.runs.table import Cell, Table, mean_of
from losse.watch.watched import Folder, Watched

MANY = 12
"""Runs of a figure beyond which means are drawn instead of lines."""
LISTED = 200
"""Runs that the table of a folder lists, at most."""
_LOOK = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; } h2 { border-top: 1px solid var(--line); padding-top: 1.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .8rem 0; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); }
figure { margin: 1rem 0; background: #fff; border-radius: 8px; padding: .5rem; }
figure svg { max-width: 100%; height: auto; } figcaption { color: #333; font-size: .9rem; }
.wide { overflow-x: auto; } .problem { border-left: 4px solid #d55e00; padding-left: .8rem; }
pre { overflow-x: auto; font-size: .85rem; } small { opacity: .75; }
"""


def report(watched: Watched) -> str:
    """The report of all watched folders, as one HTML document that needs nothing else.

    Raises FileNotFoundError if there are no runs.
    """
    folders = [folder for folder in watched.folders() if folder.runs or folder.sweep]
    if not folders:
        names = ", ".join(str(root) for root in watched.roots)
        raise FileNotFoundError(f"no runs in {names}: name folders of runs, such as results/train.")
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [section for folder in folders for section in _folder(folder)]
    title = "Runs of losse"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{_LOOK}</style>\n</head>\n<body>",
            f"<h1>{title}</h1>\n<p>Written by <code>losse report</code> on {made}. "
            "Means have their standard error over seeds behind them.</p>",
            *parts,
            "</body>\n</html>\n",
        ]
    )


def _folder(folder: Folder) -> Iterable[str]:
    yield f"<h2>{escape(folder.name)}</h2>"
    for problem in folder.problems:
        yield f'<p class="problem">Left out: {escape(problem)}</p>'
    if folder.sweep is not None:
        yield from _sweep(folder.sweep)
    finals = [run for run in folder.runs if run["stage"] == "runs"]
    for setting in dict.fromkeys(run["setting"] for run in finals):
        alike = [run for run in finals if run["setting"] == setting]
        yield f"<h3>{escape(str(setting))}</h3>"
        yield _html(_summary(alike))
        if any(len(run["curve"]) for run in alike):
            salt = f"{folder.id}-{setting}"
            caption = "Every run is a line." if len(alike) <= MANY else "Means of seeds."
            yield f"<figure>{_figure(alike, salt)}<figcaption>{caption}</figcaption></figure>"
    yield "<details><summary>All runs</summary>"
    yield f'<div class="wide">{_html(_runs(folder.runs[:LISTED]))}</div></details>'
    yield from _provenance(folder.runs)


def _sweep(sweep: dict[str, Any]) -> Iterable[str]:
    failures = sweep.get("failures") or []
    yield (
        f"<p>The sweep is {escape(str(sweep.get('state')))}: {sweep.get('done', 0)} of "
        f"{sweep.get('total', 0)} runs done, {len(failures)} failed.</p>"
    )
    for one in failures:
        yield (
            f'<p class="problem">{escape(one["run"])} failed: {escape(one["reason"])}</p>'
            f"<details><summary>Traceback</summary><pre>{escape(one['trace'])}</pre></details>"
        )


def _summary(runs: Sequence[dict[str, Any]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for method in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == method]
        known = [run["score"] for run in own if run["score"] is not None]
        last = [run["curve"][-1, 1] for run in own if len(run["curve"])]
        shares = [run["model_share"] for run in own if "model_share" in run]
        rows.append(
            (
                style_of(method).label,
                len(own),
                mean_of(known) if known else None,
                mean_of(last) if last else None,
                f"{np.mean(shares):.0%}" if shares else None,
                f"{np.mean([run['seconds'] for run in own]):.3g} s",
            )
        )
    columns = (
        "method",
        "runs",
        "score",
        "last value of the curve",
        "model's time",
        "time of a run",
    )
    return Table(columns, rows)


def _runs(runs: Sequence[dict[str, Any]]) -> Table:
    def times(run: dict[str, Any]) -> tuple[Cell, ...]:
        names = ("update_ms", "imagination_ms", "decision_ms")
        return tuple(f"{run[name]:.3g} ms" if name in run else None for name in names)

    columns = (
        "method",
        "task",
        "seed",
        "state",
        "steps",
        "score",
        "learning",
        "imagining",
        "decision",
    )
    rows = [
        (
            style_of(run["method"]).label,
            str(run["setting"]),
            run["seed"],
            ": ".join(filter(None, (run["state"], run.get("reason")))),
            run["steps"],
            run["score"],
            *times(run),
        )
        for run in runs
    ]
    return Table(columns, rows)


def _figure(runs: Sequence[dict[str, Any]], salt: str) -> str:
    """Curves and model errors of runs of one task, as SVG."""
    with mpl.rc_context(RC | {"svg.hashsalt": salt}):
        errors = [run for run in runs if len(run["model_error"])]
        panels = 2 if errors else 1
        figure = Figure(figsize=(4.4 * panels, 3.4), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for place, key in zip(axes, ("curve", "model_error"), strict=False):
            for method in dict.fromkeys(run["method"] for run in runs):
                lines = [run[key] for run in runs if run["method"] == method and len(run[key])]
                _draw(place, lines, method, mean=len(runs) > MANY)
            place.set(xlabel="steps")
            place.locator_params(axis="x", nbins=5)
        axes[0].set_title("Curve")
        axes[0].legend(fontsize=7)
        if errors:
            axes[1].set(
                title="Error of the world model", ylabel="relative to the change", ylim=(0, None)
            )
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().partition("<svg")[1] + out.getvalue().partition("<svg")[2]


def _draw(axes: Any, lines: Sequence[Any], method: str, *, mean: bool) -> None:
    style = style_of(method)
    if mean and len(lines) > 1:
        first, last = max(line[0, 0] for line in lines), min(line[-1, 0] for line in lines)
        places = np.unique(np.concatenate([line[:, 0] for line in lines]))
        places = places[(places >= first) & (places <= last)]
        values = np.array([np.interp(places, *line.T) for line in lines])
        middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(lines))
        axes.plot(places, middle, **style.line(label=f"{style.label} ({len(lines)})"))
        axes.fill_between(places, middle - error, middle + error, color=style.color, alpha=0.2)
        return
    for k, line in enumerate(lines):
        axes.plot(*line.T, **style.line(label=style.label if k == 0 else None, linewidth=1.2))


def _provenance(runs: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Settings that all runs share, those that differ, and what code ran on what machine."""
    known = [run["settings"] for run in runs if run["settings"]]
    if known:
        names = dict.fromkeys(name for settings in known for name in settings)
        rows: list[tuple[Cell, ...]] = []
        for name in names:
            values = dict.fromkeys(json.dumps(settings.get(name)) for settings in known)
            rows.append((name, " or ".join(list(values)[:6]) + (" or others" * (len(values) > 6))))
        table = _html(Table(("setting", "value"), rows))
        yield f'<details><summary>Settings</summary><div class="wide">{table}</div></details>'
    made = {
        (run["cpu"], run["revision"], json.dumps(run["versions"])) for run in runs if "cpu" in run
    }
    for cpu, revision, versions in sorted(made, key=str):
        told = ", ".join(f"{name} {number}" for name, number in json.loads(versions).items())
        code = f"revision {revision}" if revision else "an installed package"
        yield f"<p><small>{escape(cpu)}; {escape(code)}; {escape(told)}.</small></p>"


def _html(table: Table) -> str:
    def cell(value: Cell) -> str:
        if isinstance(value, float):
            return f"{value:.4g}"
        return "" if value is None else escape(str(value))

    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
