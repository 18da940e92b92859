"""`losse bench gridworld-dqn`: a plain DQN in the Gridworld, for rewards and limits of an episode.

This is how the defaults of `losse/Gridworld-v0` were chosen. The agent is SBX's DQN with as many
gradient steps as steps of the environment. Every so often its greedy policy tries some episodes of
200 steps from the start (the shortest take about 38). The score of a run is the share of them that
reach the goal, over the last quarter of the run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

from benchmarks.display import show
from losse.cli import fail
from losse.cli.progress import RunDisplay
from losse.envs.gridworld_dynamics import START_SIZE, at_goal, move
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.runner import complete
from losse.runs.store import Store
from losse.runs.table import Table, mean_score

REQUIRED = ("gymnasium", "stable_baselines3", "sbx")
EVALUATIONS = 20
EPISODES = 10
PATIENCE = 200
NOISE = 0.01
DQN: dict[str, Any] = {
    "learning_rate": 3e-3,
    "buffer_size": 100_000,
    "learning_starts": 500,
    "batch_size": 64,
    "gamma": 0.99,
    "train_freq": 4,
    "gradient_steps": 4,
    "target_update_interval": 200,
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.05,
}
NETWORK = (64, 64)


@dataclass(frozen=True)
class Settings:
    """Learn the Gridworld with a plain DQN, for each reward and limit of an episode."""

    rewards: tuple[Literal["step", "sparse"], ...] = ("step", "sparse")
    """Rewards to try."""
    limits: tuple[int, ...] = (500, 2000)
    """Limits of an episode to try."""
    seeds: int = 2
    """Repeats of each."""
    steps: int = 60_000
    """Steps of the environment."""
    workers: int = 2
    """Number of processes, of one thread each; 0 runs everything in this one."""
    out: Path = Path("results/bench/gridworld-dqn")
    """Folder of the records and the table; runs that have a record are not repeated."""


def run(settings: Settings) -> list[Record]:
    """Learn what has no record yet; write the table of all."""
    runs = [
        Run("gridworld-dqn", "dqn", f"{reward}-{limit}", seed, options_of(settings, reward, limit))
        for seed in range(settings.seeds)
        for reward, limit in product(settings.rewards, settings.limits)
    ]
    store = Store(settings.out)
    with RunDisplay(Console(), "gridworld-dqn") as display:
        failed = complete(learn, runs, store, display, name="agents", workers=settings.workers)
    records = store.read()
    if records:
        text = table(records).markdown() + "\n"
        (settings.out / "table.md").write_text(text, encoding="utf-8")
        show(text)
    if failed:
        fail(f"{len(failed)} runs failed: {', '.join(run.name for run in failed)}")
    return records


def options_of(settings: Settings, reward: str, limit: int) -> dict[str, Any]:
    """All that decides a run's result, apart from the seed."""
    about = {"steps": settings.steps, "reward": reward, "limit": limit, "net": NETWORK}
    return about | DQN


def table(records: Sequence[Record]) -> Table:
    """The share of episodes that reach the goal, and the agents that know the way in the end."""
    rows = []
    for setting in sorted({str(record.setting) for record in records}):
        own = [record for record in records if record.setting == setting]
        learned = sum(record.curve[-1][1] > 0.5 for record in own)
        rows.append((*setting.split("-"), mean_score(own, "dqn"), f"{learned} of {len(own)}"))
    return Table(("reward", "limit", "episodes that reach the goal", "agents that learned"), rows)


def learn(runs: Sequence[Run]) -> list[Record]:
    """Train one agent after the other, and test each along the way."""
    import gymnasium
    import sbx

    import losse.envs  # noqa: F401 - registers the environment

    records = []
    for run in runs:
        options = run.options
        env = gymnasium.make(
            "losse/Gridworld-v0", reward=options["reward"], max_episode_steps=options["limit"]
        )
        network = {"net_arch": list(NETWORK)}
        agent = sbx.DQN("MlpPolicy", env, seed=run.seed, policy_kwargs=network, **DQN)
        began = time.perf_counter()
        curve = train(agent, options["steps"], run.seed)
        last = [share for _, share in curve[-max(len(curve) // 4, 1) :]]
        seconds = round(time.perf_counter() - began, 1)
        records.append(run.record(float(np.mean(last)), seconds=seconds, curve=curve))
    return records


def train(agent: Any, steps: int, seed: int) -> list[tuple[float, float]]:
    """Train an agent; return the share of episodes that reach the goal, along the way."""
    stretch = max(steps // EVALUATIONS, 1)
    curve: list[tuple[float, float]] = []

    def test(local: Any, _: Any) -> bool:
        now = local["self"].num_timesteps
        if now % stretch == 0:
            curve.append((now, arrivals(agent, seed)))
        return True

    agent.learn(steps, callback=test)
    return curve


def arrivals(agent: Any, seed: int) -> float:
    """The share of some episodes, side by side, in which the greedy policy reaches the goal."""
    rng = np.random.default_rng(seed)
    positions = rng.uniform(0.0, START_SIZE, size=(EPISODES, 2))
    arrived = np.zeros(EPISODES, dtype=bool)
    for _ in range(PATIENCE):
        actions, _ = agent.predict(positions.astype(np.float32), deterministic=True)
        positions = move(positions, actions, rng.normal(0.0, NOISE, EPISODES))
        arrived |= at_goal(positions)
    return float(arrived.mean())
