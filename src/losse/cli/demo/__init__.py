"""`losse demo`: an agent plans in a world model that it learns, and who forgets.

`losse demo` swings up a pendulum by planning, live, and draws an episode beside its plans. Then two
world models learn the steps of another agent side by side, 25 at a time: Losse, and a neural
network with a memory of the last 256 transitions. The demo shows live where each is wrong, and
draws figure 1. `losse demo dyna` trains DQNs with Losse and without a model, several seeds side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from threadpoolctl import threadpool_limits

from losse.cli import INTERRUPTED, fail, require_writable
from losse.runs.record import Record


@dataclass(frozen=True)
class Settings:
    """Watch an agent learn, and draw what it learns and who forgets."""

    story: Annotated[Literal["planning", "dyna"], tyro.conf.Positional] = "planning"
    """planning: a pendulum is swung up by planning, then the picture of forgetting. dyna: DQNs with
    Losse and without a model, in the Gridworld."""
    steps: int | None = None
    """Steps of each agent; by default 1000 of planning, 15,000 with Dyna."""
    seed: int = 0
    """Seed; with Dyna the first of several."""
    seeds: int = 3
    """Seeds that are shown side by side with Dyna."""
    out: Path = Path("results/demo")
    """Folder for the records and the figures."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("seeds", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")


def main(arguments: Sequence[str]) -> None:
    """Run the demo with the given command line."""
    console = Console()
    try:
        run(tyro.cli(Settings, prog="losse demo", args=list(arguments)), console)
    except (ValueError, FloatingPointError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        console.print("Interrupted: what was done until here may be in the folder.")
        raise SystemExit(INTERRUPTED) from None


def run(settings: Settings, console: Console) -> list[Record]:
    """Tell the story that was asked for; return its records."""
    require_writable(settings.out)
    console.print("loading ...", style="dim", highlight=False)
    with threadpool_limits(1):  # matrices this small only lose by more threads
        if settings.story == "dyna":
            from losse.cli.demo.agents import show_agents

            return show_agents(settings.steps, settings.seed, settings.seeds, settings.out, console)
        from losse.cli.demo.forgetting import show_forgetting
        from losse.cli.demo.pendulum import show_planning

        records = [show_planning(settings.steps, settings.seed, settings.out, console)]
        return records + show_forgetting(settings.steps, settings.seed, settings.out, console)
