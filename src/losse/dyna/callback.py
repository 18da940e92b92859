"""Callback that binds a replay buffer to its agent and keeps a checkpoint of the run."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from losse.checks import check_count, check_positive
from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.checkpoint import rescue_run, save_run
from losse.dyna.models import check_model, model_for
from losse.world import WorldModel

FIRST_SECONDS = 10.0
"""Seconds until the first checkpoint."""
SAVING_PAUSE = 20.0
"""Pause after a checkpoint, in times that it took."""


class DynaCallback(BaseCallback):
    """Callback for agents that were built with a `DynaReplayBuffer`, and for checkpoints.

    Parameters
    ----------
    world_model
        As in `make_dyna`. None: the model that the buffer is bound to already.
    model_options
        As in `make_dyna`.
    checkpoint
        A folder. Agent, replay buffer and world model are saved there together; `load_run` goes on
        from them. A run that is killed, or that diverges, keeps the last of these. When the folder
        cannot be written, a run is saved elsewhere, with a warning that says where.
    checkpoint_every, checkpoint_seconds
        Environment steps and seconds between two checkpoints, whichever are over first. The first
        is there after ten seconds, and one more at the end. Where saving takes long, checkpoints
        by the clock are rarer: they take at most a twentieth of the time.
    notes
        Is called for what a checkpoint shall also keep, as in `save_run`.
    on_save
        Is called after each checkpoint with its folder and its number of environment steps.

    Examples
    --------
    >>> import tempfile
    >>> from stable_baselines3 import DQN
    >>> from losse.dyna import DynaCallback, load_run, make_dyna
    >>> folder = tempfile.mkdtemp()
    >>> agent = make_dyna(DQN, "CartPole-v1", planning_steps=1, buffer_size=1000)
    >>> agent = agent.learn(152, callback=DynaCallback(checkpoint=folder))
    >>> agent = load_run(DQN, folder, "CartPole-v1")
    >>> agent = agent.learn(48, callback=DynaCallback(), reset_num_timesteps=False)
    >>> agent.num_timesteps, agent.replay_buffer.world_model.n_transitions
    (200, 200)
    """

    def __init__(
        self,
        world_model: WorldModel | str | None = None,
        *,
        model_options: Mapping[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10_000,
        checkpoint_seconds: float = 300.0,
        notes: Callable[[], Mapping[str, Any]] | None = None,
        on_save: Callable[[Path, int], None] | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        check_count("checkpoint_every", checkpoint_every)
        check_positive("checkpoint_seconds", checkpoint_seconds)
        if world_model is not None:
            check_model(world_model, model_options)
        self._world_model = world_model
        self._model_options = model_options
        self._folder = checkpoint
        self._every = checkpoint_every
        self._seconds = checkpoint_seconds
        self._notes = notes
        self._on_save = on_save
        self._saved_at = 0
        self._rescued: Path | None = None

    def _on_training_start(self) -> None:
        buffer = self._buffer
        if self._world_model is not None and self._world_model is not buffer.world_model:
            if buffer.bound:
                raise ValueError(
                    f"world_model={self._world_model!r} was given, but the agent has one already: "
                    "leave it out."
                )
            model = model_for(self.model, self._world_model, self._model_options)
            buffer.bind(self.model, model)
        self._saved_at = self.num_timesteps
        self._due = time.monotonic() + min(FIRST_SECONDS, self._seconds)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # Only here all transitions are stored, and the agent has been trained on them.
        if self._folder is None:
            return
        steps = self.model.num_timesteps - self._saved_at
        if steps >= self._every or (steps > 0 and time.monotonic() >= self._due):
            try:
                self._save()
            except OSError as error:  # there may be room again before the training ends
                warnings.warn(str(error), stacklevel=2)
                self._saved_at = self.model.num_timesteps
                self._due = time.monotonic() + self._seconds

    def _on_training_end(self) -> None:
        self._buffer.flush()
        if self._folder is not None:
            self._save()

    def _save(self) -> None:
        assert self._folder is not None
        began = time.monotonic()
        folder = self._save_anywhere(self._notes() if self._notes else None)
        self._saved_at = self.model.num_timesteps
        if self._on_save is not None:
            self._on_save(folder, self._saved_at)
        now = time.monotonic()
        self._due = now + max(self._seconds, SAVING_PAUSE * (now - began))

    def _save_anywhere(self, notes: Mapping[str, Any] | None) -> Path:
        """Save in the folder that was asked for, else where it went before, else anywhere."""
        assert self._folder is not None
        try:
            return save_run(self.model, self._folder, notes)
        except OSError as error:
            reason = error
        if self._rescued is not None:
            with suppress(OSError):
                return save_run(self.model, self._rescued, notes)
        self._rescued = rescue_run(self.model, self._folder, notes)
        warnings.warn(
            f"{os.fspath(self._folder)} cannot be written ({reason}): the run is saved in "
            f"{self._rescued} instead.",
            stacklevel=2,
        )
        return self._rescued

    @property
    def _buffer(self) -> DynaReplayBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, DynaReplayBuffer):
            raise TypeError(
                f"{type(self.model).__name__} has no DynaReplayBuffer: make it with make_dyna, or "
                "with replay_buffer_class=DynaReplayBuffer."
            )
        return buffer
