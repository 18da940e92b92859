"""`losse demo`: watch two world models learn the Gridworld, and see which one forgets.

A Q-learner looks for the goal. Its visits are wide at first and end on the shortest path. Losse and
a neural network with a memory of the last 256 transitions learn the same transitions, 25 at a time.
The demo shows live where each is wrong, then draws figure 1 from what it has seen. It is one stream
of `losse reproduce forgetting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import tyro
from rich.console import Console
from threadpoolctl import threadpool_limits

from losse.cli.demo_view import LiveView
from losse.paper import forgetting
from losse.paper.experiment import Run
from losse.paper.forgetting_places import Frame, follow
from losse.paper.look import LOOK
from losse.paper.report import save_figure
from losse.records import Record, write_record

METHODS: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 3e-5},  # the choice of `losse reproduce forgetting`
    "losse": {"regressor": "paper"},
}


@dataclass(frozen=True)
class Settings:
    """Train world models while an agent explores the Gridworld, and draw who forgets."""

    steps: int = forgetting.PRESETS["paper"].steps
    """Steps of the agent."""
    seed: int = 0
    """Seed of the agent, the environment and the models."""
    out: Path = Path("results/demo")
    """Folder for the records and the figures."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")


def main(arguments: Sequence[str]) -> None:
    """Run the demo with the given command line."""
    run(tyro.cli(Settings, prog="losse demo", args=list(arguments)))


def run(settings: Settings) -> list[Record]:
    """Learn, showing how it goes; write the records and, from them, the figures."""
    console = Console()
    common = forgetting.options_of(forgetting.Settings(preset="paper", steps=settings.steps))
    runs = [
        Run(forgetting.NAME, method, forgetting.ENVIRONMENT, settings.seed, common | options)
        for method, options in METHODS.items()
    ]
    with threadpool_limits(1):  # matrices this small only lose by more threads
        frames = learn(runs, console)
    records = [
        forgetting.record_of(run, own, with_maps=True)
        for run, own in zip(runs, frames, strict=True)
    ]
    for record in records:
        write_record(record, settings.out)
    console.print("Drawing the figures.")
    files = []
    with mpl.rc_context(LOOK):
        for stem, figure in forgetting.draw(records).items():
            files += save_figure(figure, settings.out / stem)
    console.print(forgetting.table(records).markdown(), markup=False)
    console.print(f"Figures: {', '.join(map(str, files))}", soft_wrap=True)
    return records


def learn(runs: Sequence[Run], console: Console) -> list[list[Frame]]:
    """Let the models of all runs learn one stream side by side; return the frames of each."""
    console.print("A Q-learner explores the Gridworld.")
    stream = forgetting.stream_of(runs[0])
    timing = {name: runs[0].options[name] for name in ("update_every", "frame_every")}
    models = [follow(stream, forgetting.model_of(run), **timing) for run in runs]
    frames: list[list[Frame]] = [[] for _ in runs]
    with LiveView(console, [run.method for run in runs], len(stream.actions)) as view:
        for moment in zip(*models, strict=True):
            view.show(moment)
            for own, frame in zip(frames, moment, strict=True):
                own.append(frame)
    return frames
