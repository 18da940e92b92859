"""`losse bench river`: Losse among River's regressors, by progressive validation.

Every method predicts each sample before it learns from it. One record is written per method,
stream and seed; a run that has its record is not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from river import metrics

from benchmarks.display import show
from benchmarks.river.track import METHODS, REAL, STREAMS
from losse.cli import fail
from losse.cli.progress import RunDisplay
from losse.integrations.river import LosseRegressor
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.runner import complete
from losse.runs.store import Store
from losse.runs.table import Mean, Table, mean_of

CHECKPOINTS = 20


@dataclass(frozen=True)
class Settings:
    """Compare Losse with River's regressors by progressive validation."""

    methods: tuple[str, ...] = tuple(METHODS)
    """Which methods to run."""
    streams: tuple[str, ...] = tuple(STREAMS)
    """Which streams to learn."""
    seeds: int = 1
    """Seeds from 0, of the methods and of the synthetic streams."""
    samples: int = 10_000
    """Length of the synthetic streams; the others have their own."""
    workers: int = 1
    """Number of processes, of one thread each; 0 runs everything in this one."""
    results: Path = Path("results/bench/river")
    """Folder of the records and the table."""

    def __post_init__(self) -> None:
        for name, known in (("methods", METHODS), ("streams", STREAMS)):
            for value in getattr(self, name):
                if value not in known:
                    raise ValueError(f"{name} has {value!r}; choose from: {', '.join(known)}")
        for name in ("seeds", "samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def run(settings: Settings) -> list[Record]:
    """Measure what has no record yet; write and print the table of all records."""
    store = Store(settings.results)
    runs = [
        Run("river", method, stream, seed, options_of(settings, method, stream, seed))
        for seed in range(settings.seeds)
        for stream in settings.streams
        for method in settings.methods
    ]
    with RunDisplay(Console(), "river") as display:
        failed = complete(measure, runs, store, display, name="runs", workers=settings.workers)
    records = [r for r in store.read() if r.method in METHODS and r.setting in STREAMS]
    text = document(records)
    (settings.results / "table.md").write_text(text, encoding="utf-8")
    show(text)
    if failed:
        fail(f"{len(failed)} runs failed: {', '.join(run.name for run in failed)}")
    return records


def options_of(settings: Settings, method: str, stream: str, seed: int) -> dict[str, Any]:
    """The length of a stream, and the model with its parameters."""
    rows = STREAMS[stream](settings.samples, seed)
    samples = rows.n_samples if stream in REAL else settings.samples
    return {"samples": samples, "model": " ".join(repr(METHODS[method](seed)).split())}


def measure(runs: Sequence[Run]) -> list[Record]:
    """Let the methods of some runs predict and learn their streams."""
    LosseRegressor().learn_one({"x": 0.0}, 0.0)  # what is compiled here is nobody's time
    return [_measure(run) for run in runs]


def _measure(run: Run) -> Record:
    model: Any = METHODS[run.method](run.seed)
    rows = list(STREAMS[str(run.setting)](run.options["samples"], run.seed))
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
    details = {"rmse": rmse.get(), "bytes": model._raw_memory_usage}
    return run.record(mae.get(), seconds=seconds, curve=curve, details=details)


def document(records: Sequence[Record]) -> str:
    """Errors, processor time and memory as Markdown; the least error of a stream is bold."""
    parts: list[tuple[str, bool, Callable[[Record], float]]] = [
        ("Mean absolute error", True, lambda r: r.score),
        ("Root mean squared error", True, lambda r: r.details["rmse"]),
        ("Processor time, ms per sample", False, lambda r: 1e3 * r.seconds / r.settings["samples"]),
        ("Memory, MB, as River counts it", False, lambda r: r.details["bytes"] / 1e6),
    ]
    text = [f"# River's regressors and Losse\n\n{_about(records)}\n"]
    for title, is_error, value in parts:
        text.append(f"## {title}\n\n{table(records, is_error, value).markdown()}\n")
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


def table(records: Sequence[Record], is_error: bool, value: Callable[[Record], float]) -> Table:
    """One figure: a row per method, a column per stream."""
    streams = [s for s in STREAMS if any(r.setting == s for r in records)]
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        values.setdefault((record.method, str(record.setting)), []).append(value(record))
    means = {where: mean_of(found) for where, found in values.items()}
    least: dict[str, float] = {
        s: min(mean.mean for (_, t), mean in means.items() if t == s) for s in streams
    }

    def cell(mean: Mean | None, stream: str) -> str | None:
        if mean is None:
            return None
        spread = f" ± {mean.error:.1g}" if is_error and mean.error else ""
        text = f"{mean.mean:.3g}{spread}"
        return f"**{text}**" if is_error and mean.mean == least[stream] else text

    rows = [
        (method, *(cell(means.get((method, stream)), stream) for stream in streams))
        for method in METHODS
        if any((method, stream) in means for stream in streams)
    ]
    return Table(("method", *streams), rows)
