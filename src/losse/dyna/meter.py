"""Meter of a run: the model's error, the mix of data, and the time that the model takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Meter:
    """Sums over a whole run; they are saved with the replay buffer."""

    update_seconds: float = 0.0
    imagination_seconds: float = 0.0
    real_rows: int = 0
    imagined_rows: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    """Errors of the model on the newest transitions, before it learned them; `one_step_errors`."""

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
