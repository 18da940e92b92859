"""One run of a planning agent in an environment: its course, its result, and its checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback

from losse.checks import check_count
from losse.planning.agent import PlanningAgent
from losse.planning.checkpoint import read_notes
from losse.planning.options import AGENT, PlanningOptions


@dataclass(frozen=True)
class RunProgress:
    """State of a run, and at its end the result.

    Attributes
    ----------
    steps
        Environment steps so far.
    curve
        (environment steps, return) at the end of each episode.
    errors
        (environment steps, error of the model on the newest steps relative to their change), at
        the end of each episode.
    decisions, decision_seconds, update_seconds
        Number of decisions, and the time that decisions and updates of the model have taken.
    seconds
        Time of the run by the clock.
    """

    steps: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    errors: tuple[tuple[int, float], ...] = ()
    decisions: int = 0
    decision_seconds: float = 0.0
    update_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def score(self) -> float:
        """Mean return of all episodes; NaN if none has ended."""
        if not self.curve:
            return float("nan")
        return sum(value for _, value in self.curve) / len(self.curve)

    @property
    def decision_ms(self) -> float:
        """Mean time of a decision in milliseconds; NaN before the first."""
        return 1e3 * self.decision_seconds / self.decisions if self.decisions else float("nan")


Report = Callable[[RunProgress], None]


class Watch(BaseCallback):
    """Follows a run: reports its progress, and keeps it with the agent from time to time."""

    def __init__(
        self,
        before: RunProgress,
        report: Report | None,
        save: Report,
        stop: Callable[[], bool] | None,
        checkpoint_every: int,
    ) -> None:
        super().__init__()
        self.progress = before
        self._before = before
        self._report = report
        self._save = save
        self._stop = stop
        self._every = checkpoint_every

    def _on_training_start(self) -> None:
        self._began = time.perf_counter()
        self._saved_at = self.num_timesteps

    def _on_step(self) -> bool:
        meter = self._agent.meter
        for info in self.locals["infos"]:
            if "episode" in info:
                step = self.num_timesteps
                error = meter.errors.get("change_error")
                self.progress = replace(
                    self.progress,
                    curve=(*self.progress.curve, (step, float(info["episode"]["r"]))),
                    errors=self.progress.errors + (() if error is None else ((step, error),)),
                )
                self._take_stock()
        return self._stop is None or not self._stop()

    def _on_rollout_start(self) -> None:
        # Only here the model has learned all steps so far.
        self._take_stock()
        if self.num_timesteps - self._saved_at >= self._every:
            self._save(self.progress)
            self._saved_at = self.num_timesteps

    def _on_training_end(self) -> None:
        self._take_stock()

    def _take_stock(self) -> None:
        meter = self._agent.meter
        self.progress = replace(
            self.progress,
            steps=self._agent.num_timesteps,
            decisions=meter.decisions,
            decision_seconds=meter.decision_seconds,
            update_seconds=meter.update_seconds,
            seconds=self._before.seconds + time.perf_counter() - self._began,
        )
        if self._report is not None:
            self._report(self.progress)

    @property
    def _agent(self) -> PlanningAgent:
        assert isinstance(self.model, PlanningAgent)
        return self.model


def run(
    options: PlanningOptions,
    folder: Path | None = None,
    *,
    resume: bool = False,
    checkpoint_every: int = 1000,
    stop: Callable[[], bool] | None = None,
    report: Report | None = None,
    callbacks: Sequence[BaseCallback] = (),
) -> tuple[PlanningAgent, RunProgress]:
    """Let an agent learn and plan for as long as the options say.

    Parameters
    ----------
    options
        What to do.
    folder
        Where the agent is saved, at times and at the end; None for nowhere.
    resume
        Whether to go on with the agent in the folder, if there is one.
    checkpoint_every
        Environment steps between two checkpoints.
    stop
        Called after every step; if it returns true, the run is saved and ends.
    report
        Called with the progress every few steps.
    callbacks
        Further ones of Stable-Baselines3, which see the agent itself.
    """
    check_count("checkpoint_every", checkpoint_every)
    env = gymnasium.make(options.env, **options.env_options)
    file = None if folder is None else folder / AGENT
    if file is not None and resume and file.exists():
        notes = read_notes(file)
        _require_same(options, notes["options"], file)
        agent = PlanningAgent.load(file, env)
        agent.set_random_seed(options.seed + agent.num_timesteps)  # not the same chances again
        progress = _progress(notes["progress"])
    else:
        agent, progress = options.agent(env), RunProgress()

    def save(reached: RunProgress) -> None:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            agent.save(file, {"options": asdict(options), "progress": asdict(reached)})

    watch = Watch(progress, report, save, stop, checkpoint_every)
    left = options.steps - agent.num_timesteps
    if left > 0:
        agent.learn(left, callback=[watch, *callbacks], reset_num_timesteps=False)
        save(watch.progress)
    return agent, watch.progress


def _require_same(options: PlanningOptions, saved: Mapping[str, Any], file: Path) -> None:
    """Raise unless a saved run had the same options, but for the number of steps."""
    for name, value in asdict(options).items():
        if name != "steps" and saved.get(name) != value:
            raise ValueError(
                f"{name}={value!r} is not that of the run saved in {file}, {saved.get(name)!r}: "
                "resume with the same options, or choose another folder."
            )


def _progress(saved: Mapping[str, Any]) -> RunProgress:
    pairs = {name: tuple(map(tuple, saved[name])) for name in ("curve", "errors")}
    return RunProgress(**dict(saved) | pairs)
