"""The demo of Dyna: DQNs with Losse and without a model, several seeds side by side."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from losse.cli.demo.views import AgentView
from losse.cli.train.command import about, record_of
from losse.cli.train.figure import draw
from losse.dyna.options import Training
from losse.dyna.training import train
from losse.envs import Gridworld
from losse.paper.control import tasks as control
from losse.paper.control.discrete_control import NAME, USUAL_RATE
from losse.runs.experiment import Run
from losse.runs.following import TrainingFollower
from losse.runs.journal import Journal
from losse.runs.record import Record, file_name
from losse.runs.store import write_record
from losse.runs.table import Cell, Table, mean_of
from losse.world import make_world_model

ENVIRONMENT = "losse/Gridworld-v0"
METHODS = ("losse", "model-free-matched")
EVALUATIONS = 40
"""Twice as many as in the experiment: there is something to see every second."""


def show_agents(
    steps: int | None, first: int, seeds: int, out: Path, console: Console
) -> list[Record]:
    """Train one agent after the other, showing how it goes; write records, figure and table."""
    console.print(
        f"DQNs look for the way through the Gridworld, {seeds} with a world model and {seeds} "
        "without one, with as many gradient steps. Some seeds find the goal late: look at all.",
        highlight=False,
    )
    console.print("Getting ready; the first time, Losse is compiled.")
    warm_up()
    folder, records = out / "agents", []
    for seed in range(first, first + seeds):
        for method in METHODS:
            training = training_of(method, steps or control.TASKS[ENVIRONMENT].steps, seed)
            place = folder / file_name(method, f"seed{seed}")
            with (
                AgentView(console, training) as view,
                Journal(place, about(training)) as journal,
                warnings.catch_warnings(),
            ):
                warnings.filterwarnings("ignore", category=DeprecationWarning)
                follower = TrainingFollower(journal, view)
                result = train(training, observer=follower, callbacks=[follower])
            records.append(record_of(training, result))
            write_record(records[-1], folder)
    files = draw(records, folder)
    env = Gridworld()
    console.print(agents_table(records).markdown(), markup=False, soft_wrap=True)
    console.print(
        "The model's error is that of new steps, relative to their length. The noise of the "
        f"Gridworld alone makes about {env.noise / env.layout.step_size:.1f}.\n"
        "`losse reproduce discrete-control` has ten seeds and more methods.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"Records and figure: {folder}, {files[0]}", soft_wrap=True)
    return records


def training_of(method: str, steps: int, seed: int) -> Training:
    """A training with the settings of `losse reproduce discrete-control`."""
    options = control.options_of(method, ENVIRONMENT, steps, USUAL_RATE)
    training = control.training_of(Run(NAME, method, ENVIRONMENT, seed, options), ENVIRONMENT)
    return replace(training, eval_every=max(1, steps // EVALUATIONS))


def warm_up() -> None:
    """Use a world model once: what is compiled or loaded then is not the model's time later."""
    env, rng = Gridworld(), np.random.default_rng(0)
    obs, actions = rng.random((50, 2)), rng.integers(4, size=50)
    model = make_world_model(
        "losse", env.observation_space, env.action_space, **control.MODELS["losse"]
    )
    model.update(obs, actions, np.zeros(50), obs, np.zeros(50, dtype=bool))
    model.step(obs, actions)


def agents_table(records: Sequence[Record]) -> Table:
    """Table of the agents' returns and of what their models cost, with a mean for each method."""
    columns = (
        "agent", "seed", "last return", "mean return", "first goal", "model error", "model's time"
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for method in METHODS:
        own = [record for record in records if record.method == method]
        rows += [(method, *_row(record)) for record in own]
        last = mean_of([record.curve[-1][1] for record in own])
        rows.append((method, "all", last, mean_of([r.score for r in own]), None, None, None))
    return Table(columns, rows)


def _row(record: Record) -> tuple[Cell, ...]:
    details = record.details
    goal = details["first_end"]
    model = ("none", "none")
    if details["model_error"]:
        spent = details["update_seconds"] + details["imagination_seconds"]
        model = (f"{details['model_error'][-1][1]:.3f}", f"{spent / record.seconds:.0%}")
    reached = "never" if goal is None else f"step {goal}"
    last = f"{record.curve[-1][1]:.1f}"
    return (record.seed, last, f"{record.score:.1f}", reached, *model)
