"""Checks that stop a run whose agent or world model has diverged, and say which of the two."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from losse.dyna.agents import largest_weight
from losse.world import WorldModel
from losse.world.transitions import Transitions

LARGEST_WEIGHT = 1e8
"""A network with larger weights has diverged, whether or not its numbers are finite still."""
TOO_FAR = 1e3
"""A prediction this many times larger than anything seen means that the model has diverged."""


class DivergedModelError(FloatingPointError):
    """A world model predicts what cannot be true."""


def require_healthy(agent: Any) -> None:
    """Raise `FloatingPointError` if the agent's weights are not finite, or far too large."""
    largest = largest_weight(agent)
    if not largest <= LARGEST_WEIGHT:
        what = "is not finite" if not math.isfinite(largest) else f"has grown to {largest:.1e}"
        raise FloatingPointError(
            f"the agent has diverged: a weight of {type(agent).__name__} {what} after "
            f"{agent.num_timesteps} steps. Its world model is not at fault. Lower learning_rate, "
            "or go on from the last checkpoint."
        )


class DivergenceGuard:
    """Recognises a diverged model: predictions not finite, or far from all that was seen."""

    def __init__(self, largest: Mapping[str, float] | None = None) -> None:
        self.largest = {"observations": 0.0, "rewards": 0.0} | dict(largest or {})

    def see(self, happened: Transitions) -> None:
        """Take note of real transitions."""
        for name, size in sizes(happened).items():
            self.largest[name] = max(self.largest[name], size)

    def require(self, imagined: Mapping[str, float], model: WorldModel) -> None:
        """Raise `DivergedModelError` if rows with these `sizes` cannot be true."""
        for name, size in imagined.items():
            if not size <= TOO_FAR * (1.0 + self.largest[name]):
                raise DivergedModelError(
                    f"the world model has diverged: after {model.n_transitions} transitions "
                    f"{type(model).__name__} imagines {name} of size {size:.1e}, but the "
                    f"largest one seen was {self.largest[name]:.1e}. The agent is not at fault. "
                    "Give the model a larger ridge or a lower learning rate, or go on from the "
                    "last checkpoint."
                )


def sizes(rows: Transitions) -> dict[str, float]:
    """Largest absolute values of observations and rewards."""
    named = {"observations": rows.next_obs, "rewards": rows.rewards}
    return {name: float(np.abs(values).max(initial=0.0)) for name, values in named.items()}
