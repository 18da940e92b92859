"""How does Losse compare with River's regressors?  `losse bench river`.

Every method predicts each sample before it learns from it (progressive validation). One record is
written per method, stream and seed; a run that has its record is not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from river import metrics
from threadpoolctl import threadpool_limits

from benchmarks.river_track import METHODS, REAL, STREAMS, Method, Stream
from losse.integrations.river import LosseRegressor
from losse.runs.record import Record
from losse.runs.store import read_record, read_records, write_record

CHECKPOINTS = 20


@dataclass(frozen=True)
class Settings:
    """Compare Losse with River's regressors by progressive validation."""

    methods: tuple[Method, ...] = tuple(METHODS)
    """Which methods to run."""
    streams: tuple[Stream, ...] = tuple(STREAMS)
    """Which streams to learn."""
    seeds: int = 1
    """Seeds from 0, of the methods and of the synthetic streams."""
    samples: int = 10_000
    """Length of the synthetic streams; the others have their own."""
    results: Path = Path("results/bench/river")
    """Folder of the records and the table."""

    def __post_init__(self) -> None:
        for name in ("seeds", "samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def run(settings: Settings) -> list[Record]:
    """Measure what has no record yet; write and print the table of all records."""
    console = Console()
    runs = [
        (method, stream, seed)
        for seed in range(settings.seeds)
        for stream in settings.streams
        for method in settings.methods
    ]
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, disable=not console.is_terminal,
    )  # fmt: skip
    with progress, threadpool_limits(1):
        bar = progress.add_task("compiling", total=len(runs))
        LosseRegressor().learn_one({"x": 0.0}, 0.0)
        for method, stream, seed in runs:
            progress.update(bar, description=f"{method} on {stream}, seed {seed}")
            measure(settings, method, stream, seed)
            progress.advance(bar)

    records = [r for r in read_records(settings.results) if _belongs(r, settings)]
    text = table(records)
    (settings.results / "table.md").write_text(text, encoding="utf-8")
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)
    return records


def measure(settings: Settings, method: Method, stream: Stream, seed: int) -> Record:
    """The record of a run: that of an earlier one if it had the same settings."""
    model: Any = METHODS[method](seed)
    rows = list(STREAMS[stream](settings.samples, seed))
    about = {"samples": len(rows), "model": " ".join(repr(model).split())}
    record = Record(
        experiment="river", method=method, setting=stream, seed=seed, score=0.0, settings=about
    )
    path = settings.results / f"{record.run}.json"
    if path.exists() and (earlier := read_record(path)).settings == about:
        return earlier

    mae, rmse, curve, seconds = metrics.MAE(), metrics.RMSE(), [], 0.0
    every = max(1, len(rows) // CHECKPOINTS)
    for n, (x, y) in enumerate(rows, start=1):
        began = time.process_time()
        predicted = model.predict_one(x)
        model.learn_one(x, y)
        seconds += time.process_time() - began
        if predicted is not None:  # as River does: a model may not know yet
            mae.update(y, predicted)
            rmse.update(y, predicted)
        if n % every == 0:
            curve.append((n, mae.get()))
    record = Record(
        experiment="river",
        method=method,
        setting=stream,
        seed=seed,
        score=mae.get(),
        curve=curve,
        settings=about,
        seconds=seconds,
        details={"rmse": rmse.get(), "bytes": model._raw_memory_usage},
    )
    write_record(record, settings.results)
    return record


def table(records: Sequence[Record]) -> str:
    """Errors, processor time and memory as Markdown; the least error of a stream is bold."""
    parts: list[tuple[str, bool, Callable[[Record], float]]] = [
        ("Mean absolute error", True, lambda r: r.score),
        ("Root mean squared error", True, lambda r: r.details["rmse"]),
        ("Processor time, ms per sample", False, lambda r: 1e3 * r.seconds / r.settings["samples"]),
        ("Memory, MB, as River counts it", False, lambda r: r.details["bytes"] / 1e6),
    ]
    text = [f"# River's regressors and Losse\n\n{_about(records)}\n"]
    text += [f"## {title}\n\n{_part(records, is_error, v)}" for title, is_error, v in parts]
    return "\n".join(text)


def _about(records: Sequence[Record]) -> str:
    lines = []
    for stream in STREAMS:
        own = [r for r in records if r.setting == stream]
        if own:
            n_seeds = len({r.seed for r in own})
            seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
            lines.append(f"- {stream}: {own[0].settings['samples']:,} samples, {seeds}")
    return (
        "Progressive validation: each sample is predicted, then learned. Drawn from the records in "
        "this folder by `losse bench river`. Means, with standard errors where seeds differ:\n\n"
        + "\n".join(lines)
    )


def _part(records: Sequence[Record], is_error: bool, value: Callable[[Record], float]) -> str:
    """One table: a row per method, a column per stream."""
    streams = [s for s in STREAMS if any(r.setting == s for r in records)]
    cells: dict[tuple[str, str], tuple[float, float]] = {}
    for method in METHODS:
        for stream in streams:
            values = [value(r) for r in records if (r.method, r.setting) == (method, stream)]
            if values:
                differ = len(set(values)) > 1
                error = np.std(values, ddof=1) / np.sqrt(len(values)) if differ else 0.0
                cells[method, stream] = float(np.mean(values)), float(error)
    best: dict[str, float] = {
        s: min(mean for (_, t), (mean, _) in cells.items() if t == s) for s in streams
    }

    def cell(method: str, stream: str) -> str:
        if (method, stream) not in cells:
            return ""
        mean, error = cells[method, stream]
        text = f"{mean:.3g}" if not error or not is_error else f"{mean:.3g} ± {error:.1g}"
        return f"**{text}**" if is_error and mean == best[stream] else text

    lines = [["method", *streams], ["---"] * (len(streams) + 1)]
    lines += [
        [method, *(cell(method, stream) for stream in streams)]
        for method in METHODS
        if any((method, stream) in cells for stream in streams)
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _belongs(record: Record, settings: Settings) -> bool:
    """Whether a record is of these streams' lengths, whatever was chosen to run just now."""
    known = record.method in METHODS and record.setting in STREAMS
    return known and (record.setting in REAL or record.settings["samples"] == settings.samples)
