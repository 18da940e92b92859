"""First part of the demo: a pendulum is swung up by planning in a world model that is learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from losse.cli.plan.animation import animate
from losse.cli.plan.command import PlanView, about, record_of
from losse.cli.train.figure import draw
from losse.planning.options import PlanningOptions
from losse.planning.run import run as run_agent
from losse.runs.following import PlanningFollower
from losse.runs.journal import Journal
from losse.runs.record import Record, file_name
from losse.runs.store import write_record

if TYPE_CHECKING:
    from losse.planning.run import RunProgress

STEPS = 1000
"""Five episodes, of which the first is random."""


def show_planning(steps: int | None, seed: int, out: Path, console: Console) -> Record:
    """Let the agent learn and plan, showing how it goes; write record, figure and animation."""
    options = PlanningOptions(env="Pendulum-v1", steps=steps or STEPS, seed=seed)
    folder = out / "planning"
    console.print(
        "A pendulum is to be swung up. There is no policy: the agent learns what its actions do, "
        "and looks ahead in that model before every step. The first 200 steps are random.",
        highlight=False,
    )
    place = folder / file_name(options.model, f"seed{seed}")
    with PlanView(console, options) as view, Journal(place, about(options)) as journal:
        follower = PlanningFollower(journal)

        def report(progress: RunProgress) -> None:
            view.show(progress)
            follower.report(progress)

        agent, result = run_agent(options, report=report, callbacks=[follower])
    record = record_of(options, result)
    write_record(record, folder)
    files = []
    if record.curve:
        files += draw([record], folder, return_of="one episode")[:1]
        best = max(value for _, value in record.curve)
        console.print(
            f"The random episode returned {record.curve[0][1]:.0f}, the best one {best:.0f}; "
            f"{result.decision_ms:.0f} ms a decision.\nDrawing one more episode ...",
            highlight=False,
        )
        files.append(animate(agent, options, folder / "episode.gif"))
    told = ", ".join(map(str, files))
    console.print(f"Figure, and an episode beside its plans: {told}\n", soft_wrap=True)
    return record
