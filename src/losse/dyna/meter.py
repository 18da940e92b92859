"""Meter of a run: the model's error, the mix of data, and the time that the model takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Meter:
    """Sums over a whole run; they are saved with the replay buffer."""

    update_seconds: float = 0.0
    imagination_seconds: float = 0.0
    model_cpu_seconds: float = 0.0
    """Of both, on the processor: a busy machine does not change them much."""
    real_rows: int = 0
    imagined_rows: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    """Errors of the model on the newest transitions, before it learned them; `one_step_errors`."""

    @contextmanager
    def timing(self, part: Literal["update_seconds", "imagination_seconds"]) -> Iterator[None]:
        """Add the time of what follows.

        >>> meter = Meter()
        >>> with meter.timing("update_seconds"):
        ...     _ = sum(range(1000))
        >>> 0 < meter.update_seconds == meter.model_seconds, 0 <= meter.model_cpu_seconds
        (True, True)
        """
        began, cpu = time.perf_counter(), time.process_time()
        yield
        setattr(self, part, getattr(self, part) + time.perf_counter() - began)
        self.model_cpu_seconds += time.process_time() - cpu

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
