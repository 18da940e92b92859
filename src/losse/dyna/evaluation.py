"""Evaluations along a training: returns, the first goal, and where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.meter import Meter

EVALUATION_SEED = 1_000_000
"""Is added to a run's seed: its evaluations start all in the same states, but not in training's."""


@dataclass(frozen=True)
class TrainingProgress:
    """State of a training: how far it is, and at its end the result.

    Attributes
    ----------
    curve
        (environment steps, mean return of an evaluation).
    times
        (environment steps, seconds of training up to an evaluation), on the processor: a busy
        machine does not change them much.
    errors
        (environment steps, error of the world model on the newest transitions, relative to their
        change).
    first_end
        Environment steps until the first episode that was not cut off: in the paper's discrete
        tasks, when the goal was first reached. None if there was none.
    seconds
        Time of training by the clock, without the evaluations.
    update_seconds, imagination_seconds
        The world model's part of that time.
    """

    steps: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    times: tuple[tuple[int, float], ...] = ()
    errors: tuple[tuple[int, float], ...] = ()
    first_end: int | None = None
    seconds: float = 0.0
    update_seconds: float = 0.0
    imagination_seconds: float = 0.0
    gradient_steps: int = 0

    @property
    def score(self) -> float:
        """The mean over all evaluations: good early and good at the end."""
        return sum(value for _, value in self.curve) / max(1, len(self.curve))

    @property
    def model_share(self) -> float:
        """The world model's share of the time."""
        spent = self.update_seconds + self.imagination_seconds
        return spent / self.seconds if self.seconds else 0.0


Report = Callable[[TrainingProgress], None]


class EvaluationCallback(BaseCallback):
    """Callback that evaluates the agent at fixed steps and at the end, and keeps the results.

    Parameters
    ----------
    env
        As many environments as an evaluation has episodes.
    every
        Environment steps between two evaluations.
    seed
        Seed of the run.
    before
        What an earlier part of the same training has come to.
    report
        Is called after every evaluation.
    """

    def __init__(
        self, env: VecEnv, every: int, seed: int, before: TrainingProgress, report: Report | None
    ) -> None:
        super().__init__()
        self.progress = before
        self._every = every
        self._seed = seed
        self._env = env
        self._report = report
        self._evaluating = np.zeros(2)

    def _on_training_start(self) -> None:
        self._began = _clocks()
        cpu = self.progress.times[-1][1] if self.progress.times else 0.0
        self._before = np.array([self.progress.seconds, cpu])

    def _on_step(self) -> bool:
        if self.progress.first_end is None:
            ends = zip(self.locals["dones"], self.locals["infos"], strict=True)
            if any(done and not info.get("TimeLimit.truncated", False) for done, info in ends):
                self.progress = replace(self.progress, first_end=self.num_timesteps)
        if self.num_timesteps // self._every > self.progress.steps // self._every:
            self._evaluate()
        return True

    def _on_rollout_start(self) -> None:
        self._take_stock()

    def _on_training_end(self) -> None:
        self._take_stock()
        last = self.progress.curve[-1][0] if self.progress.curve else 0
        # A rollout may go a few steps beyond those that were asked for.
        if last < min(self.num_timesteps, self.locals["total_timesteps"]):
            self._evaluate()

    def _evaluate(self) -> None:
        self._take_stock()
        cpu = float(self._spent()[1])
        began = _clocks()
        value = mean_return(self.model, self._env, self._seed)
        self._evaluating += _clocks() - began
        steps = self.num_timesteps
        self.logger.record("eval/mean_reward", value)
        error = self._meter.errors.get("change_error")
        errors = () if error is None else ((steps, error),)
        self.progress = replace(
            self.progress,
            curve=(*self.progress.curve, (steps, value)),
            times=(*self.progress.times, (steps, round(cpu, 3))),
            errors=self.progress.errors + errors,
        )
        if self._report is not None:
            self._report(self.progress)

    def _take_stock(self) -> None:
        meter = self._meter
        self.progress = replace(
            self.progress,
            steps=self.num_timesteps,
            seconds=float(self._spent()[0]),
            update_seconds=meter.update_seconds,
            imagination_seconds=meter.imagination_seconds,
            gradient_steps=self.model._n_updates,  # SB3 counts them, but says so only in its log
        )

    def _spent(self) -> npt.NDArray[np.float64]:
        return self._before + _clocks() - self._began - self._evaluating

    @property
    def _meter(self) -> Meter:
        buffer = getattr(self.model, "replay_buffer", None)
        assert isinstance(buffer, DynaReplayBuffer)
        return buffer.meter


def mean_return(agent: BaseAlgorithm, env: VecEnv, seed: int) -> float:
    """Mean return of one episode in each of several environments, with the best known actions.

    Observations are normalised as in training; returns are not.
    """
    env.seed(EVALUATION_SEED + seed)
    mean, _ = evaluate_policy(agent, _normalised(agent, env), env.num_envs, warn=False)
    assert isinstance(mean, float)
    return float(mean)


def _normalised(agent: BaseAlgorithm, env: VecEnv) -> VecEnv:
    """The environments as the agent sees those of its training."""
    normaliser = agent.get_vec_normalize_env()
    if normaliser is None:
        return env
    same = copy(normaliser)  # the same statistics, without the environments
    same.training = same.norm_reward = False
    same.set_venv(env)
    return same


def _clocks() -> npt.NDArray[np.float64]:
    """Seconds by the clock, and seconds on the processor."""
    return np.array([time.perf_counter(), time.process_time()])
