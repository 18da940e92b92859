"""Followers of runs: callbacks that keep a journal of a training or of a planning agent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from losse.dyna.progress import TrainingObserver, TrainingProgress
from losse.runs.journal import EVERY_SECONDS, SHARE, Journal
from losse.runs.probe import Probe
from losse.world import Transitions

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer
    from losse.planning.run import RunProgress


class Follower(BaseCallback):
    """Callback that looks into the model of an agent and writes the journal of its run."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self._probe: Probe | None = None
        self._began = time.perf_counter()
        self._look_due = 0.0

    def _on_step(self) -> bool:
        return True

    @property
    def _affordable(self) -> bool:
        """Whether predictions have taken a small share of the time so far."""
        assert self._probe is not None
        return self._probe.spent < SHARE / 2 * (time.perf_counter() - self._began)

    def _write(self, reached: dict[str, Any], *, at_once: bool = False) -> None:
        """Write the journal if it is due, and look into the model if that is affordable."""
        if at_once or self._journal.due:
            self._journal.write(reached)
        began = time.perf_counter()
        if self._probe is not None and (at_once or began >= self._look_due):
            self._journal.write_probe(self._probe.look(reached["steps"]))
            now = time.perf_counter()
            self._look_due = now + max(EVERY_SECONDS, (now - began) / SHARE)


class TrainingFollower(Follower, TrainingObserver):
    """Follower of a training with Dyna: a callback of its agent, and an observer of its progress.

    Parameters
    ----------
    journal
        What it writes to.
    observer
        Another observer, which is told of everything, too.
    """

    def __init__(self, journal: Journal, observer: TrainingObserver | None = None) -> None:
        super().__init__(journal)
        self._observer = observer or TrainingObserver()
        self._progress = TrainingProgress()
        self._rows = self._learned = 0

    def stage(self, name: str) -> None:
        self._observer.stage(name)

    def stepped(self, steps: int) -> None:
        self._observer.stepped(steps)

    def evaluated(self, progress: TrainingProgress) -> None:
        self._observer.evaluated(progress)
        self._progress = progress

    def saved(self, folder: Path, steps: int) -> None:
        self._observer.saved(folder, steps)

    def _on_training_start(self) -> None:
        self._began = time.perf_counter()
        buffer = self._buffer
        if buffer.world_model is not None:
            self._probe = Probe(buffer.world_model)
            self._rows, self._learned = buffer.pos, buffer.world_model.n_transitions

    def _on_rollout_start(self) -> None:
        buffer, model = self._buffer, self._buffer.world_model
        if self._probe is not None and model is not None:
            new = (buffer.pos - self._rows) % buffer.buffer_size
            steps = (buffer.pos - new + np.arange(new)) % buffer.buffer_size
            if new:
                happened = buffer.transitions(steps * buffer.n_envs)  # of the first environment
                self._probe.follow(happened)
                if model.n_transitions == self._learned:
                    self._probe.see(happened, self.num_timesteps, with_std=self._affordable)
            self._rows, self._learned = buffer.pos, model.n_transitions
        self._write(self._reached())

    def _on_training_end(self) -> None:
        self._write(self._reached(), at_once=True)

    def _reached(self) -> dict[str, Any]:
        meter = self._buffer.meter
        return {
            "steps": self.num_timesteps,
            "curve": self._progress.curve,
            "model_error": self._progress.errors,
            "seconds": time.perf_counter() - self._began,
            "update_seconds": meter.update_seconds,
            "imagination_seconds": meter.imagination_seconds,
        }

    @property
    def _buffer(self) -> DynaReplayBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        assert buffer is not None
        return buffer


class PlanningFollower(Follower):
    """Follower of a planning agent: a callback, and a report of its progress."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._progress: RunProgress | None = None

    def report(self, progress: RunProgress) -> None:
        """Hear how far the run is."""
        self._progress = progress

    def _on_training_start(self) -> None:
        self._began = time.perf_counter()
        self._probe = Probe(self.model.world_model)  # type: ignore[attr-defined]

    def _on_rollout_end(self) -> None:
        # Here the model has not yet learned what is pending.
        pending = self.model.pending  # type: ignore[attr-defined]
        if pending and self._probe is not None:
            happened = Transitions.from_steps(pending[:: self.training_env.num_envs])
            self._probe.follow(happened)
            self._probe.see(happened, self.num_timesteps, with_std=self._affordable)
        self._write(self._reached())

    def _on_training_end(self) -> None:
        self._write(self._reached(), at_once=True)

    def _reached(self) -> dict[str, Any]:
        now = self._progress
        if now is None:
            return {"steps": self.num_timesteps}
        return {
            "steps": now.steps,
            "curve": now.curve,
            "model_error": now.errors,
            "seconds": now.seconds,
            "update_seconds": now.update_seconds,
            "decisions": now.decisions,
            "decision_seconds": now.decision_seconds,
        }
