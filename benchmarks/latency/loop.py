"""Calls of a control loop, one row at a time, each of them timed.

The rows are those of a made-up plant with 12 states and 4 actions: each state moves towards a
squashed mix of all states and actions. Its constants come from the seed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from benchmarks.display import live_line, pin
from losse import FTLRegressor, LosseEncoder
from losse._kernels.block import INSTRUCTIONS
from losse.runs.record import Record
from losse.typing import Array
from losse.world import LosseWorldModel

STATES, ACTIONS = 12, 4
ROLLOUTS, HORIZON = 64, 10
IMAGINE_EVERY = 10
"""Rows of the plant between two imaginations: they take most of the time."""
LOADED = 3_000
"""Rows with which compiled code is loaded before calls are timed, at most."""

Model = Literal["grids", "recommended"]
LEARN, PREDICT, UPDATE, IMAGINE = "partial_fit", "predict", "update", "imagine"
CALLS = {
    LEARN: "FTLRegressor.partial_fit, 1 row",
    PREDICT: "FTLRegressor.predict, 1 row",
    UPDATE: "LosseWorldModel.update, 1 row",
    IMAGINE: f"LosseWorldModel.step, {HORIZON} times for {ROLLOUTS} states",
}
"""Calls that are timed, and what they are in words."""
EDGES = np.logspace(-6, 2, 81)
"""Edges of the histograms' bins, in seconds: ten to a decade."""


class Job(NamedTuple):
    """One model to measure."""

    model: Model
    rows: int
    preset: str
    seed: int
    core: int | None


class Times:
    """Seconds of every call of one kind: by the clock, and on the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function and time it."""
        cpu, wall = time.thread_time(), time.perf_counter()
        result = function(*args)
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.thread_time() - cpu)
        return result

    def summary(self) -> dict[str, Any]:
        """Quantiles of both, and the histogram by the clock."""
        counts, _ = np.histogram(np.clip(self.wall, EDGES[0], EDGES[-1]), EDGES)
        return {
            "calls": len(self.wall),
            "wall": quantiles(self.wall),
            "cpu": quantiles(self.cpu),
            "histogram": counts.tolist(),
        }


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median, higher quantiles and maximum.

    >>> quantiles([1.0, 2.0, 3.0])["max"]
    3.0
    """
    names = {"p50": 50, "p99": 99, "p99.9": 99.9, "max": 100}
    return {name: float(np.percentile(seconds, q)) for name, q in names.items()}


def plant(n: int, seed: int) -> tuple[Array, Array, Array]:
    """States, random actions and next states."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(STATES + ACTIONS, STATES)) / np.sqrt(STATES + ACTIONS)
    actions = rng.uniform(-1.0, 1.0, size=(n, ACTIONS))
    states = np.empty((n + 1, STATES))
    states[0] = rng.normal(size=STATES)
    for t in range(n):
        pull = np.tanh(2.0 * np.concatenate([states[t], actions[t]]) @ mix)
        states[t + 1] = states[t] + 0.3 * (1.5 * pull - states[t])
    return states[:-1], actions, states[1:]


def regressor(model: Model, seed: int) -> FTLRegressor:
    """The paper's 30 grids with its sparse update, or the recommended model."""
    if model == "recommended":
        return FTLRegressor()
    encoder = LosseEncoder(30, n_bins=10, grid_dim=2, scaling=(-3, 3), seed=seed)
    return FTLRegressor(encoder, solver="sparse", ridge=1e-5)


def world_model(model: Model, seed: int) -> LosseWorldModel:
    """A world model of the plant around the same regressor."""
    low, high = np.full(STATES, -3.0), np.full(STATES, 3.0)
    return LosseWorldModel(
        Box(low, high, dtype=np.float64),
        Box(-1.0, 1.0, (ACTIONS,), np.float64),
        regressor=regressor(model, seed),
        termination="never",
        seed=seed,
    )


def drive(job: Job, step: Callable[[str], None]) -> dict[str, Times]:
    """Run the loop over all rows and time its calls."""
    states, actions, following = plant(job.rows, job.seed)
    inputs, targets = np.hstack([states, actions]), following - states
    rng = np.random.default_rng(job.seed)
    learner, world = regressor(job.model, job.seed), world_model(job.model, job.seed)
    times = {name: Times() for name in CALLS}

    def imagine(obs: Array, chosen: Array) -> None:
        for action in chosen:
            obs, *_ = world.step(obs, action)

    rewards, ends = np.zeros(1), np.zeros(1, dtype=bool)
    for t in range(job.rows):
        now = slice(t, t + 1)
        if t:
            times[PREDICT].call(learner.predict, inputs[now])
        times[LEARN].call(learner.partial_fit, inputs[now], targets[now])
        transition = (states[now], actions[now], rewards, following[now], ends)
        times[UPDATE].call(world.update, *transition)
        if t % IMAGINE_EVERY == 0:
            chosen = rng.uniform(-1.0, 1.0, size=(HORIZON, ROLLOUTS, ACTIONS))
            times[IMAGINE].call(imagine, states[rng.integers(0, t + 1, ROLLOUTS)], chosen)
        if t % 500 == 0:
            step(f"{t:,} rows")
    return times


def measure(job: Job) -> Record:
    """The record of one model; the score is the worst of the calls' 99.9 % quantiles."""
    core = pin(job.core)
    begin = time.perf_counter()
    with live_line(job.model) as step:
        step("compiling")
        drive(job._replace(rows=min(job.rows, LOADED)), step)
        times = drive(job, step)
    calls = {name: taken.summary() for name, taken in times.items()}
    return Record(
        experiment="bench-latency",
        method="losse",
        setting=f"{job.model}, {INSTRUCTIONS}",
        seed=job.seed,
        score=max(call["wall"]["p99.9"] for call in calls.values()),
        settings={
            "preset": job.preset,
            "rows": job.rows,
            "model": job.model,
            "instructions": INSTRUCTIONS,
        },
        seconds=time.perf_counter() - begin,
        details={"core": core, "calls": calls},
    )
