"""Measures of planning: its cost, and the error of its model on the newest steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Meter:
    """Sums over the life of an agent.

    Attributes
    ----------
    decisions, decision_seconds
        Number of decisions, and the time that they have taken in all.
    update_seconds
        Time that the model has taken to learn.
    errors
        Of the model on the newest transitions, before it learned them; see `one_step_errors`.
    """

    decisions: int = 0
    decision_seconds: float = 0.0
    update_seconds: float = 0.0
    errors: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A file says anything.
        sums = (self.decisions, self.decision_seconds, self.update_seconds)
        if not all(type(value) in (int, float) and value >= 0 for value in sums):
            raise ValueError(f"{sums} are not sums")
        if not all(type(error) in (int, float) for error in self.errors.values()):
            raise ValueError(f"{self.errors} are not errors")

    @property
    def decision_ms(self) -> float:
        """Mean time of a decision in milliseconds; NaN before the first."""
        return 1e3 * self.decision_seconds / self.decisions if self.decisions else float("nan")

    def log(self, logger: Any) -> None:
        """Write to a logger of Stable-Baselines3."""
        for name, error in self.errors.items():
            logger.record(f"model/{name}", error)
        if self.decisions:
            logger.record("planning/decision_ms", self.decision_ms)
        logger.record("planning/update_seconds", self.update_seconds)
