"""Can a plain DQN learn the Gridworld?  Rewards and limits of an episode, each with a few seeds.

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

from losse.envs.gridworld_dynamics import START_SIZE, at_goal, move
from losse.runs.record import Record, file_name
from losse.runs.store import read_records, write_record
from losse.runs.table import Table, mean_score
from losse.runs.workers import Failure, run_jobs

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


@dataclass(frozen=True)
class Job:
    """One agent."""

    reward: str
    limit: int
    seed: int
    steps: int

    @property
    def setting(self) -> str:
        """The reward and the limit in one word."""
        return f"{self.reward}-{self.limit}"


def run(settings: Settings) -> list[Record]:
    """Learn what has no record yet; write the table of all."""
    jobs = [
        Job(reward, limit, seed, settings.steps)
        for seed in range(settings.seeds)
        for reward, limit in product(settings.rewards, settings.limits)
    ]
    missing = [
        job
        for job in jobs
        if not (settings.out / f"{file_name('dqn', job.setting, f'seed{job.seed}')}.json").exists()
    ]
    for job, result in run_jobs(learn, missing, settings.workers):
        if isinstance(result, Failure):
            raise RuntimeError(f"{job} failed: {result.reason}\n{result.trace}")
        write_record(result, settings.out)
        print(f"{job.setting}, seed {job.seed}: {result.score:.0%} reach the goal")
    records = read_records(settings.out)
    text = table(records).markdown()
    (settings.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return records


def table(records: Sequence[Record]) -> Table:
    """The share of episodes that reach the goal, and the agents that know the way in the end."""
    rows = []
    for setting in sorted({str(record.setting) for record in records}):
        own = [record for record in records if record.setting == setting]
        learned = sum(record.curve[-1][1] > 0.5 for record in own)
        rows.append((*setting.split("-"), mean_score(own, "dqn"), f"{learned} of {len(own)}"))
    return Table(("reward", "limit", "episodes that reach the goal", "agents that learned"), rows)


def learn(job: Job) -> Record:
    """Train one agent, and test it along the way."""
    import gymnasium
    import sbx

    import losse.envs  # noqa: F401 - registers the environment

    env = gymnasium.make("losse/Gridworld-v0", reward=job.reward, max_episode_steps=job.limit)
    network = {"net_arch": list(NETWORK)}
    agent = sbx.DQN("MlpPolicy", env, seed=job.seed, policy_kwargs=network, **DQN)
    stretch = max(job.steps // EVALUATIONS, 1)
    curve: list[tuple[float, float]] = []

    def test(local: Any, _: Any) -> bool:
        steps = local["self"].num_timesteps
        if steps % stretch == 0:
            curve.append((steps, arrivals(agent, job.seed)))
        return True

    began = time.perf_counter()
    agent.learn(job.steps, callback=test)
    last = [share for _, share in curve[-max(len(curve) // 4, 1) :]]
    return Record(
        experiment="gridworld-dqn",
        method="dqn",
        setting=job.setting,
        seed=job.seed,
        score=float(np.mean(last)),
        curve=curve,
        settings={"steps": job.steps, "reward": job.reward, "limit": job.limit, "net": NETWORK}
        | DQN,
        seconds=round(time.perf_counter() - began, 1),
    )


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
