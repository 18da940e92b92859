"""Second part of the demo: two world models learn one stream, and one of them forgets it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console

from losse.cli.demo.views import MapsView
from losse.paper.forgetting import experiment as forgetting
from losse.paper.forgetting.figures import draw_maps, draw_shares
from losse.paper.forgetting.places import Frame, follow
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.store import write_record
from losse.runs.style import RC
from losse.runs.table import Table

WORLD_MODELS: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 3e-5},  # the choice of `losse reproduce forgetting`
    "losse": {"regressor": "paper"},
}


def show_forgetting(steps: int | None, seed: int, out: Path, console: Console) -> list[Record]:
    """Show where each model is wrong as it learns; write records and the picture of forgetting."""
    console.print(
        "An agent looks for its way through a square world, and visits less and less of it. "
        "Two world models learn from its steps. Which of them forgets what it has seen?",
        highlight=False,
    )
    runs = runs_of(steps, seed)
    models = [
        forgetting.record_of(run, frames, with_maps=True)
        for run, frames in zip(runs, learn(runs, console), strict=True)
    ]
    for record in models:
        write_record(record, out / "models")
    with mpl.rc_context(RC):
        files = save_figure(draw_maps(models), out / "forgetting")[:1]
        files += save_figure(draw_shares(models), out / "forgetting_shares")[:1]
    console.print(models_table(models).markdown(), markup=False, soft_wrap=True)
    console.print(f"Figures: {', '.join(map(str, files))}", soft_wrap=True)
    console.print(
        "Next: losse demo dyna (agents that learn from what a model imagines), losse watch "
        f"{out} (all of this as a page), losse train --env CartPole-v1",
        highlight=False,
        soft_wrap=True,
    )
    return models


def runs_of(steps: int | None, seed: int) -> list[Run]:
    """Runs of the world models on the stream of the experiment `forgetting`."""
    common = forgetting.options_of(forgetting.Settings(preset="paper", steps=steps))
    return [
        Run("demo", method, forgetting.ENVIRONMENT, seed, common | options)
        for method, options in WORLD_MODELS.items()
    ]


def learn(runs: Sequence[Run], console: Console) -> list[list[Frame]]:
    """Let the models of all runs learn one stream side by side; return the frames of each."""
    stream = forgetting.stream_of(runs[0])
    timing = {name: runs[0].options[name] for name in ("update_every", "frame_every")}
    models = [follow(stream, forgetting.model_of(run), **timing) for run in runs]
    frames: list[list[Frame]] = [[] for _ in runs]
    with MapsView(console, [run.method for run in runs], len(stream)) as view:
        for moment in zip(*models, strict=True):
            view.show(moment)
            for own, frame in zip(frames, moment, strict=True):
                own.append(frame)
    return frames


def models_table(records: Sequence[Record]) -> Table:
    """Table of the shares of wrong predictions at the end."""
    columns = ("world model", "wrong where it was", "where it is now", "everywhere")
    rows = []
    for record in records:
        last = [record.details[name][-1][1] for name in ("recent", "all")]
        rows.append((record.method, *(f"{share:.1%}" for share in (record.score, *last))))
    return Table(columns, rows)
