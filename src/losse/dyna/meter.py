"""Meter of a run: the model's error, the mix of data, and the time that the model takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from losse.world import WorldModel
from losse.world.transitions import Transitions


@dataclass
class Meter:
    """Sums over a whole run; they are saved with the replay buffer."""

    update_seconds: float = 0.0
    imagination_seconds: float = 0.0
    real_rows: int = 0
    imagined_rows: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    """Errors of the model on the newest transitions, before it learned them."""

    @property
    def model_seconds(self) -> float:
        """All the time that the world model has taken."""
        return self.update_seconds + self.imagination_seconds

    def log(self, logger: Any) -> None:
        """Write to a logger of Stable-Baselines3; errors as means until its next line."""
        for name, error in self.errors.items():
            logger.record_mean(f"model/{name}", error)
        rows = self.real_rows + self.imagined_rows
        if rows:
            logger.record("dyna/imagined_share", self.imagined_rows / rows)
        logger.record("dyna/update_seconds", self.update_seconds)
        logger.record("dyna/imagination_seconds", self.imagination_seconds)


def one_step_errors(model: WorldModel, happened: Transitions) -> dict[str, float]:
    """Errors of a model on transitions that it has not learned yet.

    ``state_error`` is the root mean square of the next observation's error, ``change_error`` the
    same in units of the change itself (1 for a model that predicts no change), ``reward_error`` the
    root mean square of the reward's and ``termination_error`` the share of wrong terminations.
    """
    next_obs, rewards, terminated = model.step(happened.obs, happened.actions)
    errors = {
        "reward_error": _rms(rewards - happened.rewards),
        "termination_error": float(np.mean(terminated != happened.terminated)),
    }
    if np.issubdtype(happened.obs.dtype, np.integer) and happened.obs.ndim == 1:
        return {"state_error": float(np.mean(next_obs != happened.next_obs))} | errors
    truth = happened.next_obs.astype(np.float64)
    error, change = _rms(next_obs - truth), _rms(truth - happened.obs)
    relative = {"change_error": error / change} if change > 0 else {}
    return {"state_error": error} | relative | errors


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
