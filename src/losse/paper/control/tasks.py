"""Tasks of discrete control (figures 5 and 6), and the training that one run of them is.

What the paper leaves open, and our choice:

- Observations are mapped to [-1, 1] by their bounds, for the DQN and all models. The velocity in
  MountainCar is at most .07 and positions in Gridworld are between 0 and 1: in trials without
  this the DQN did not learn these tasks reliably with any method.
- The DQN has two hidden layers of 64 units (the default of Stable-Baselines3), a discount of .99,
  and explores by an epsilon that falls from 1 to .05 over the first tenth of the steps.
- The target network is updated every 100 gradient steps, whatever their number per step of the
  environment, for all methods alike.
- Imagined actions are greedy or uniform with equal chance.
- Every evaluation is the mean of 5 episodes with greedy actions. In Gridworld they are cut off
  after 200 steps; the shortest way takes about 38.
- A normalised return is 0 for an agent that never gets there and 1 for a good one; the bounds are
  in `TASKS`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.table import Cell, Table, mean_of, mean_score
from losse.storage.jsonfile import plain

if TYPE_CHECKING:
    from losse.dyna.options import Training

RL = ("gymnasium", "stable_baselines3", "sbx")
"""Packages that every run needs."""
EVALUATIONS = 20


class Task(NamedTuple):
    """An environment, and what its returns mean."""

    title: str
    worst: float
    best: float
    steps: int = 0
    eval_limit: int | None = None

    def normalised(self, value: float) -> float:
        """A return on the scale from worst to best."""
        return (value - self.worst) / (self.best - self.worst)

    def returned(self, normalised: float) -> float:
        """The return behind a normalised one."""
        return self.worst + normalised * (self.best - self.worst)


TASKS = {
    "losse/Gridworld-v0": Task("Gridworld", steps=15_000, worst=-200, best=-38, eval_limit=200),
    "MountainCar-v0": Task("MountainCar", steps=20_000, worst=-200, best=-100),
    "Acrobot-v1": Task("Acrobot", steps=10_000, worst=-500, best=-70),
}

AGENT: Mapping[str, Any] = {
    "batch_size": 32,
    "train_freq": 4,
    "policy_kwargs": {"net_arch": [64, 64]},
    "gamma": 0.99,
    "learning_starts": 100,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.05,
}
EXPLORING: Mapping[str, Any] = {"exploring_starts": True, "train_limit": 100}
"""Cut off early: the 2000 steps of an episode in Gridworld would leave 8 starts in a run."""
MODELS: Mapping[str, Mapping[str, Any]] = {"losse": {"regressor": "paper"}}


def options_of(
    method: str,
    env: str,
    steps: int | None,
    learning_rate: float,
    *,
    exploring_starts: bool = False,
) -> dict[str, Any]:
    """Everything that decides a run, as plain values.

    >>> options_of("online", "Acrobot-v1", None, 1e-3)["steps"]
    10000
    """
    options = {
        "steps": steps or TASKS[env].steps,
        "learning_rate": learning_rate,
        "planning_steps": 16,
        "update_every": 25,
        "search_control": "uniform",
        "horizon": 1,
        "greedy_share": 0.5,
        "target_update_gradient_steps": 100,
        "rescale_obs": True,
        "eval_episodes": 5,
        "agent": dict(AGENT),
        "model": dict(MODELS.get(method, {})),
    }
    # Only where it is so: records of ordinary runs are compared with their options.
    return options | (dict(EXPLORING) if exploring_starts else {})


def training_of(run: Run, env: str) -> Training:
    """Training of a run: a DQN of SBX with the run's options."""
    from losse.dyna.options import DynaOptions, Training

    dyna, options = DynaOptions.taken_from(run.options)
    agent = options.pop("agent") | {"learning_rate": options.pop("learning_rate")}
    model = options.pop("model")
    return Training(
        env=env,
        agent="dqn",
        backend="sbx",
        model=run.method,
        seed=run.seed,
        eval_every=max(1, options["steps"] // EVALUATIONS),
        eval_limit=TASKS[env].eval_limit,
        dyna=dyna,
        agent_options=agent,
        model_options=model,
        **options,
    )


def preset_options(tuned: Training, steps: int | None, evaluations: int) -> dict[str, Any]:
    """Everything in a tuned training that decides a run beside method and seed, as plain values."""
    tuned = replace(tuned, steps=steps or tuned.steps)
    options = plain(replace(tuned, eval_every=max(1, tuned.steps // evaluations)))
    # Only what is in use: records that are older than an option are compared with these.
    options["dyna"] = {name: value for name, value in options["dyna"].items() if value is not None}
    unused = {"model", "seed"} | ({"reward"} if tuned.reward == "learned" else set())
    return {name: value for name, value in options.items() if name not in unused}


def train_preset(
    run: Run, task: Task, folder: Path | None = None, model: str | None = None
) -> Record:
    """Train with the options that `preset_options` has written into a run.

    The model is the one that the run's method is named after, unless another is given.
    """
    from losse.dyna.options import DynaOptions, Training

    options = dict(run.options)
    dyna = DynaOptions(**options.pop("dyna"))
    training = Training(**options, dyna=dyna, model=model or run.method, seed=run.seed)
    return train_run(run, training, task, folder)


def preset_table(
    records: Sequence[Record], tasks: Mapping[str, Task], methods: Sequence[str]
) -> Table:
    """Mean score, last return and seconds of every environment and method."""
    rows: list[tuple[Cell, ...]] = []
    for env in tasks_of(records, tasks):
        for method in methods:
            own = [r for r in records if (r.setting, r.method) == (env, method)]
            if own:
                last = [tasks[env].returned(record.curve[-1][1]) for record in own]
                score, steps = mean_score(own, method, env), own[0].settings["steps"]
                cpu = [record.details["cpu_seconds"][-1][1] for record in own]
                rows.append((env, method, steps, score, mean_of(last), float(np.mean(cpu))))
    columns = (
        *("environment", "method", "steps", "normalised return"),
        *("last return", "CPU seconds"),
    )
    return Table(columns, rows)


def _rounded(errors: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    return [(steps, float(f"{error:.3g}")) for steps, error in errors]


def train_run(run: Run, training: Training, task: Task, folder: Path | None = None) -> Record:
    """Train, evaluate along the way, and score by the mean normalised return.

    With a folder, a run that was interrupted goes on from there; it is removed at the end. An agent
    whose world model has diverged learns no more: evaluations to come would find what the last has.
    """
    from losse.dyna.training import train

    saved = None if folder is None else folder / ".running" / run.name
    result = train(training, folder=saved, resume=True, keep_diverged=True)
    if saved is not None and saved.exists():
        shutil.rmtree(saved)
    left = range(result.curve[-1][0] + training.eval_every, training.steps + 1, training.eval_every)
    returns = [*result.curve, *((steps, result.curve[-1][1]) for steps in left)]
    curve = [(steps, round(task.normalised(value), 4)) for steps, value in returns]
    details: dict[str, Any] = {
        "first_goal": result.first_end,
        "cpu_seconds": result.times,
        "model_error": _rounded(result.errors),
        "later_model_error": _rounded(result.later_errors),
        "update_seconds": round(result.update_seconds, 2),
        "imagination_seconds": round(result.imagination_seconds, 2),
        "model_cpu_seconds": round(result.model_cpu_seconds, 2),
        "gradient_steps": result.gradient_steps,
    }
    if result.diverged is not None:
        details["diverged"] = result.diverged
    score = float(np.mean([value for _, value in curve]))
    return run.record(
        score,
        seconds=round(result.seconds, 2),
        curve=[] if run.swept else curve,
        details={} if run.swept else details,
    )


def tasks_of(records: Sequence[Record], tasks: Mapping[str, Task] = TASKS) -> list[str]:
    """The tasks that have records, in their own order."""
    return [env for env in tasks if any(record.setting == env for record in records)]


def curves_of(records: Sequence[Record]) -> tuple[Any, Any]:
    """Steps, and one row of normalised returns for each record.

    >>> known = {"experiment": "e", "method": "m", "setting": "s", "score": 0.0}
    >>> both = [Record(**known, seed=k, curve=[(10, k), (20, 1)]) for k in range(2)]
    >>> steps, returns = curves_of(both)
    >>> steps.tolist(), returns.tolist()
    ([10.0, 20.0], [[0.0, 1.0], [1.0, 1.0]])
    """
    curves = np.array([record.curve for record in records], dtype=np.float64)
    return curves[0, :, 0], curves[:, :, 1]
