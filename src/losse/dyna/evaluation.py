"""Evaluations along a training: returns, the first goal, and where the time goes."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.progress import (
    COMPILING,
    EVALUATING,
    TRAINING,
    TrainingObserver,
    TrainingProgress,
)

EVALUATION_SEED = 1_000_000
"""Is added to a run's seed: its evaluations start all in the same states, but not in training's."""


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
    observer
        Is told of stages, steps and evaluations.
    """

    def __init__(
        self,
        env: VecEnv,
        every: int,
        seed: int,
        before: TrainingProgress,
        observer: TrainingObserver,
    ) -> None:
        super().__init__()
        self.progress = before
        self._every = every
        self._seed = seed
        self._env = env
        self._observer = observer
        self._stage = ""
        self._evaluating = np.zeros(2)

    def _on_training_start(self) -> None:
        self._began = _clocks()
        cpu = self.progress.times[-1][1] if self.progress.times else 0.0
        self._before = np.array([self.progress.seconds, cpu])

    def _on_step(self) -> bool:
        buffer = self._buffer
        model_compiles = (
            buffer.world_model is not None
            and buffer.meter.update_seconds == 0
            and self.num_timesteps >= buffer.options.update_every
        )
        self._enter(COMPILING if model_compiles else TRAINING)
        self._observer.stepped(self.num_timesteps)
        if self.progress.first_end is None:
            ends = zip(self.locals["dones"], self.locals["infos"], strict=True)
            if any(done and not info.get("TimeLimit.truncated", False) for done, info in ends):
                self.progress = replace(self.progress, first_end=self.num_timesteps)
        if self.num_timesteps // self._every > self.progress.steps // self._every:
            self._evaluate()
        return True

    def _on_rollout_start(self) -> None:
        self._take_stock()

    def _on_rollout_end(self) -> None:
        learning_starts = getattr(self.model, "learning_starts", 0)
        if self.progress.gradient_steps == 0 and self.num_timesteps > learning_starts:
            self._enter(COMPILING)

    def _on_training_end(self) -> None:
        self._take_stock()
        last = self.progress.curve[-1][0] if self.progress.curve else 0
        # A rollout may go a few steps beyond those that were asked for.
        if last < min(self.num_timesteps, self.locals["total_timesteps"]):
            self._evaluate()

    def _evaluate(self) -> None:
        self._enter(EVALUATING)
        self._take_stock()
        cpu = float(self._spent()[1])
        began = _clocks()
        value = mean_return(self.model, self._env, self._seed)
        self._evaluating += _clocks() - began
        steps = self.num_timesteps
        self.logger.record("eval/mean_reward", value)
        found = self._buffer.meter.errors
        errors, later = (
            ((steps, found[name]),) if name in found else ()
            for name in ("change_error", "later_change_error")
        )
        self.progress = replace(
            self.progress,
            curve=(*self.progress.curve, (steps, value)),
            times=(*self.progress.times, (steps, round(cpu, 3))),
            errors=self.progress.errors + errors,
            later_errors=self.progress.later_errors + later,
        )
        self._observer.evaluated(self.progress)

    def _enter(self, stage: str) -> None:
        if stage != self._stage:
            self._stage = stage
            self._observer.stage(stage)

    def _take_stock(self) -> None:
        meter = self._buffer.meter
        self.progress = replace(
            self.progress,
            steps=self.num_timesteps,
            seconds=float(self._spent()[0]),
            update_seconds=meter.update_seconds,
            imagination_seconds=meter.imagination_seconds,
            model_cpu_seconds=meter.model_cpu_seconds,
            gradient_steps=self.model._n_updates,  # SB3 counts them, but says so only in its log
        )

    def _spent(self) -> npt.NDArray[np.float64]:
        return self._before + _clocks() - self._began - self._evaluating

    @property
    def _buffer(self) -> DynaReplayBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        assert isinstance(buffer, DynaReplayBuffer)
        return buffer


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
