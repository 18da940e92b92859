"""Planning alone: returns of an agent that plans, beside agents that learn a policy.

All agents have the same number of environment steps. A return is that of an episode as it happens,
exploration and first random steps included; a curve has its mean over twenty equal parts of the run
(of a part in which no episode ends: that of the part before, or of the first in which one does).
Methods:

- `losse`: planning in a Losse model, as `losse plan` does it.
- `oracle`: the same planner in the simulator itself, the limit of what a model can give. It has
  nothing to learn, so its runs are short.
- `model-free`: SBX's SAC (for discrete actions DQN) alone, with one gradient step per step.
- `dyna`: the same agent with a Losse model, `losse.dyna`'s defaults.

Reward and termination are learned. The planner of each task, in `TASKS`, was chosen with the
simulator, and for CartPole with the model too; on seeds 100 and 101, which are not those of the
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.runs.experiment import Run, TaskSettings, methods_of, no_sweep
from losse.runs.record import Record
from losse.runs.table import Table, mean_of, mean_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "planning"
METHODS = ("losse", "oracle", "model-free", "dyna")
CONTROLS = ()
RL = ("gymnasium", "stable_baselines3", "sbx")
NEEDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(METHODS, RL)
SEEDS_AT_ONCE: Mapping[str, int] = {}
PARTS = 20
"""Points of a curve."""
LEARNING_STARTS = 200
"""Random steps first, of all agents."""
UPDATE_EVERY = 25


class Task(NamedTuple):
    """An environment, how it is planned in, and what its returns mean."""

    title: str
    steps: int
    worst: float
    best: float
    planner: str
    options: Mapping[str, Any]
    oracle_steps: int

    def normalised(self, value: float) -> float:
        """A return on the scale from worst to best."""
        return (value - self.worst) / (self.best - self.worst)


def _refined(horizon: int, samples: int, iterations: int, **options: Any) -> dict[str, Any]:
    return {"horizon": horizon, "n_samples": samples, "n_iterations": iterations, **options}


TASKS = {
    "Pendulum-v1": Task("Pendulum", 2000, -1300, -130, "icem", _refined(20, 100, 3), 1000),
    "InvertedPendulum-v5": Task(
        "InvertedPendulum", 3000, 0, 1000, "icem", _refined(40, 50, 2, spread=0.3), 1000
    ),
    "CartPole-v1": Task("CartPole", 2000, 0, 500, "beam", {"horizon": 25, "width": 60}, 1000),
    "MountainCarContinuous-v0": Task(
        "MountainCarContinuous", 3000, 0, 95, "icem", _refined(120, 50, 2, spread=1.0), 500
    ),
    "Reacher-v5": Task("Reacher", 3000, -45, -5, "icem", _refined(15, 100, 3), 250),
    "HalfCheetah-v5": Task("HalfCheetah", 4000, -300, 3000, "icem", _refined(15, 60, 2), 1000),
}


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    seeds: int
    envs: tuple[str, ...]


PRESETS = {"quick": Preset(2, ("Pendulum-v1", "CartPole-v1")), "paper": Preset(5, tuple(TASKS))}


@dataclass(frozen=True, kw_only=True)
class Settings(TaskSettings):
    """Plan in learned models and in the simulator, beside SAC and Dyna."""

    KNOWN = TASKS


sweep = no_sweep


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All methods, environments and seeds."""
    preset = PRESETS[settings.preset]
    return [
        Run(NAME, method, env, seed, options_of(method, env, settings.steps))
        for env in settings.envs or preset.envs
        for method in methods_of(settings, METHODS)
        for seed in range(settings.seeds or preset.seeds)
    ]


def options_of(method: str, env: str, steps: int | None) -> dict[str, Any]:
    """Everything that decides a run, as plain values.

    >>> options_of("model-free", "Reacher-v5", None)
    {'steps': 3000, 'learning_starts': 200, 'agent': 'sac', 'planning_steps': 16}
    """
    task = TASKS[env]
    length = steps or (task.oracle_steps if method == "oracle" else task.steps)
    if method in ("model-free", "dyna"):
        agent = "dqn" if task.planner == "beam" else "sac"
        return {
            "steps": length,
            "learning_starts": LEARNING_STARTS,
            "agent": agent,
            "planning_steps": 16,
        }
    return {
        "steps": length,
        "learning_starts": 0 if method == "oracle" else LEARNING_STARTS,
        "update_every": UPDATE_EVERY,
        "planner": task.planner,
        "planner_options": dict(task.options),
    }


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Let one agent learn for each run."""
    return [execute_one(run) for run in runs]


def execute_one(run: Run) -> Record:
    """Let an agent learn, and score the returns of its episodes."""
    import time

    agent = make_agent(run)
    episodes: list[tuple[int, float]] = []

    def watch(local: dict[str, Any], _: dict[str, Any]) -> bool:
        for info in local["infos"]:
            if "episode" in info:
                episodes.append((agent.num_timesteps, round(float(info["episode"]["r"]), 3)))
        return True

    began, cpu = time.perf_counter(), time.process_time()
    agent.learn(run.options["steps"], callback=watch)
    task = TASKS[str(run.setting)]
    curve = parts_of(episodes, run.options["steps"], task)
    details: dict[str, Any] = {
        "episodes": episodes,
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }
    meter = getattr(agent, "meter", None)
    if meter is not None:
        details |= {
            "decision_ms": round(meter.decision_ms, 3),
            "update_seconds": round(meter.update_seconds, 3),
        }
    score = float(np.mean([value for _, value in curve]))
    return run.record(
        score, seconds=round(time.perf_counter() - began, 2), curve=curve, details=details
    )


def make_agent(run: Run) -> Any:
    """The agent of a run."""
    import gymnasium

    env, options = str(run.setting), run.options
    if run.method in ("model-free", "dyna"):
        from losse.dyna import make_dyna
        from losse.dyna.agents import agent_class

        return make_dyna(
            agent_class(options["agent"], "sbx"),
            env,
            "losse" if run.method == "dyna" else "model-free",
            planning_steps=options["planning_steps"],
            learning_starts=options["learning_starts"],
            buffer_size=options["steps"],
            seed=run.seed,
        )
    from losse.planning import PlanningAgent

    return PlanningAgent(
        gymnasium.make(env),
        run.method,
        options["planner"],
        planner_options=options["planner_options"],
        learning_starts=options["learning_starts"],
        update_every=options["update_every"],
        seed=run.seed,
    )


def parts_of(
    episodes: Sequence[tuple[int, float]], steps: int, task: Task
) -> list[tuple[float, float]]:
    """Mean normalised return of the episodes that ended in each of twenty parts of a run.

    >>> task = TASKS["CartPole-v1"]
    >>> parts_of([(10, 50.0), (95, 100.0), (98, 200.0)], 100, task)[::9]
    [(5.0, 0.1), (50.0, 0.1), (95.0, 0.2)]
    """
    edges = np.linspace(0, steps, PARTS + 1)
    parts = [
        [task.normalised(result) for step, result in episodes if low < step <= high]
        for low, high in pairwise(edges)
    ]
    value = next((float(np.mean(own)) for own in parts if own), 0.0)
    curve = []
    for high, own in zip(edges[1:], parts, strict=True):
        value = float(np.mean(own)) if own else value
        curve.append((float(high), round(value, 4)))
    return curve


def table(records: Sequence[Record]) -> Table:
    """Mean normalised return over the run and in its last fifth, and the time that it took."""
    rows = []
    for env in _tasks_of(records):
        for method in METHODS:
            own = [r for r in records if (r.method, r.setting) == (method, env)]
            if own:
                last = mean_of([np.mean([y for _, y in r.curve[-PARTS // 5 :]]) for r in own])
                cpu = mean_of([r.details["cpu_seconds"] for r in own])
                rows.append((TASKS[env].title, method, mean_score(own, method), last, cpu.mean))
    columns = ("task", "method", "normalised return", "in the last fifth", "CPU seconds")
    return Table(columns, rows)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """Normalised return along the run, one task beside the other."""
    from losse.paper.planning.figures import draw_curves

    titles = {env: TASKS[env].title for env in _tasks_of(records)}
    return {"returns": draw_curves(records, METHODS, titles)}


def _tasks_of(records: Sequence[Record]) -> list[str]:
    return [env for env in TASKS if any(record.setting == env for record in records)]
