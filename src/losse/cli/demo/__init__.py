"""`losse demo`: watch an agent learn with a world model, and see which model forgets.

A DQN with Losse looks for the way through the Gridworld, then one without a model that takes as
many gradient steps. The steps of the first are then learned once more by two world models side by
side, 25 at a time: by Losse, and by a neural network with a memory of the last 256 transitions. The
demo shows live where each is wrong, and draws figure 1 for this agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import tyro
from rich.console import Console
from threadpoolctl import threadpool_limits

from losse.cli import INTERRUPTED, fail, require_writable
from losse.cli.demo.views import MapsView
from losse.cli.train.command import record_of
from losse.cli.train.figure import draw as draw_learning_curve
from losse.envs import Gridworld
from losse.paper.control import tasks as control
from losse.paper.forgetting import experiment as forgetting
from losse.paper.forgetting.figures import draw_maps, draw_shares
from losse.paper.forgetting.places import Frame, follow
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.report import save_figure
from losse.runs.store import write_record
from losse.runs.style import RC
from losse.runs.table import Table

if TYPE_CHECKING:
    from losse.world.transitions import Transitions

WORLD_MODELS: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 3e-5},  # the choice of `losse reproduce forgetting`
    "losse": {"regressor": "paper"},
}


@dataclass(frozen=True)
class Settings:
    """Train a DQN with a world model in the Gridworld, and draw what it learns and who forgets."""

    steps: int = control.TASKS[forgetting.ENVIRONMENT].steps
    """Steps of each agent."""
    seed: int = 0
    """Seed of the agents, the environment and the models."""
    out: Path = Path("results/demo")
    """Folder for the records and the figures."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")


def main(arguments: Sequence[str]) -> None:
    """Run the demo with the given command line."""
    console = Console()
    try:
        run(tyro.cli(Settings, prog="losse demo", args=list(arguments)), console)
    except (ValueError, FloatingPointError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        console.print("Interrupted: nothing was saved.")
        raise SystemExit(INTERRUPTED) from None


def run(settings: Settings, console: Console) -> list[Record]:
    """Learn, showing how it goes; write the records and, from them, the figures."""
    require_writable(settings.out)
    from losse.cli.demo.agents import train_agents  # takes seconds, which --help need not wait for

    with threadpool_limits(1):  # matrices this small only lose by more threads
        console.print("An agent looks for the way through the Gridworld.")
        both = list(train_agents(settings.steps, settings.seed, console))
        console.print("Which world model forgets what the first agent has seen?")
        runs = forgetting_runs(settings)
        frames = learn(runs, both[0].stream, console)
    agents = [record_of(one.training, one.result) for one in both]
    models = [
        forgetting.record_of(run, own, with_maps=True)
        for run, own in zip(runs, frames, strict=True)
    ]
    for folder, records in (("agents", agents), ("models", models)):
        for record in records:
            write_record(record, settings.out / folder)
    files = draw_learning_curve(agents, settings.out)
    with mpl.rc_context(RC):
        files += save_figure(draw_maps(models), settings.out / "forgetting")
        files += save_figure(draw_shares(models), settings.out / "forgetting_shares")
    summarise(console, agents, models)
    console.print(f"Records: {settings.out}/agents, {settings.out}/models", soft_wrap=True)
    console.print(f"Figures: {', '.join(map(str, files))}", soft_wrap=True)
    return agents + models


def forgetting_runs(settings: Settings) -> list[Run]:
    """Runs of the world models that learn the agent's steps."""
    common = {
        "steps": settings.steps,
        "stream": "DQN with losse",
        "update_every": forgetting.UPDATE_EVERY,
        "frame_every": forgetting.PRESETS["paper"].frame_every,
    }
    return [
        Run("demo", method, forgetting.ENVIRONMENT, settings.seed, common | options)
        for method, options in WORLD_MODELS.items()
    ]


def learn(runs: Sequence[Run], stream: Transitions, console: Console) -> list[list[Frame]]:
    """Let the models of all runs learn one stream side by side; return the frames of each."""
    timing = {name: runs[0].options[name] for name in ("update_every", "frame_every")}
    models = [follow(stream, forgetting.model_of(run), **timing) for run in runs]
    frames: list[list[Frame]] = [[] for _ in runs]
    with MapsView(console, [run.method for run in runs], len(stream.actions)) as view:
        for moment in zip(*models, strict=True):
            view.show(moment)
            for own, frame in zip(frames, moment, strict=True):
                own.append(frame)
    return frames


def summarise(console: Console, agents: Sequence[Record], models: Sequence[Record]) -> None:
    """Print the tables of agents and models, and how to read the first."""
    env = Gridworld()
    console.print(agents_table(agents).markdown(), markup=False, soft_wrap=True)
    console.print(
        "The model's error is that of new steps, relative to their length. The noise of the "
        f"Gridworld alone makes about {env.noise / env.layout.step_size:.1f}.\n"
        "One seed shows how it goes, not which is better: `losse reproduce discrete-control`.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(models_table(models).markdown(), markup=False, soft_wrap=True)


def agents_table(records: Sequence[Record]) -> Table:
    """Table of the agents' returns and of what their models cost."""
    columns = ("agent", "last return", "mean return", "first goal", "model error", "model's time")
    rows = []
    for record in records:
        details = record.details
        goal = details["first_end"]
        model = ("none", "none")
        if details["model_error"]:
            spent = details["update_seconds"] + details["imagination_seconds"]
            model = (f"{details['model_error'][-1][1]:.3f}", f"{spent / record.seconds:.0%}")
        rows.append(
            (
                record.method,
                f"{record.curve[-1][1]:.1f}",
                f"{record.score:.1f}",
                "never" if goal is None else f"step {goal}",
                *model,
            )
        )
    return Table(columns, rows)


def models_table(records: Sequence[Record]) -> Table:
    """Table of the shares of wrong predictions at the end."""
    columns = ("world model", "wrong where it was", "where it is now", "everywhere")
    rows = []
    for record in records:
        last = [record.details[name][-1][1] for name in ("recent", "all")]
        rows.append((record.method, *(f"{share:.1%}" for share in (record.score, *last))))
    return Table(columns, rows)
