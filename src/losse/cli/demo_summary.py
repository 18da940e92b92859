"""What came of the demo, in two small tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from losse.envs import Gridworld
from losse.runs.record import Record
from losse.runs.table import Table


def summarise(console: Console, agents: Sequence[Record], models: Sequence[Record]) -> None:
    """Print both, and how to read the first."""
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
    """How the agents did, and what their model cost."""
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
    """The shares of wrong predictions at the end."""
    columns = ("world model", "wrong where it was", "where it is now", "everywhere")
    rows = []
    for record in records:
        last = [record.details[name][-1][1] for name in ("recent", "all")]
        rows.append((record.method, *(f"{share:.1%}" for share in (record.score, *last))))
    return Table(columns, rows)
