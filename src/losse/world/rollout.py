"""Imagined episodes: many short ones at once, as one flat list of transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count
from losse.typing import Array
from losse.world.spaces import numbers
from losse.world.transitions import Transitions, Values, take

if TYPE_CHECKING:
    from losse.world.model import WorldModel

Policy = Callable[[Values], Values]


@dataclass(frozen=True, eq=False)
class Rollout(Transitions):
    """Imagined transitions, those of the first step first.

    Attributes
    ----------
    obs, actions, rewards, next_obs, terminated
        One row per transition, as `WorldModel.update` takes them.
    step
        How many imagined steps lie before each.
    start
        The row of the start state from which each came.
    """

    step: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]


def roll_out(model: WorldModel, obs: Values, policy: Policy, horizon: int, max_std: Any) -> Rollout:
    """Imagine short episodes; see `WorldModel.rollout`."""
    check_count("horizon", horizon)
    limit = None if max_std is None else _limit(max_std, model.observations.width)
    # Refused before the policy sees it.
    alive = np.arange(len(model.observations.rows("obs", obs)))
    current = model.observations.cast(obs)
    steps = []
    for depth in range(horizon):
        # At depth 0 also without rows, for the dtypes and shapes of the result.
        if depth and not len(alive):
            break
        actions = policy(current) if len(alive) else model.actions.none()
        if limit is None:
            next_obs, rewards, terminated = model.step(current, actions)
            sure: Any = slice(None)
        else:
            next_obs, rewards, terminated, std = model.step(current, actions, return_std=True)
            sure = (std <= limit).all(axis=1)
        depths = np.full(len(alive), depth)
        actions = model.actions.cast(actions)
        made = Rollout(current, actions, rewards, next_obs, terminated, depths, alive).take(sure)
        steps.append(made)
        current, alive = take(made.next_obs, ~made.terminated), made.start[~made.terminated]
    return Rollout.concatenate(steps)


def _limit(max_std: Any, width: int) -> Array:
    limit = numbers("max_std", max_std)
    if limit.shape not in ((), (width,)) or not (limit > 0).all():
        raise ValueError(
            f"max_std={max_std!r} must be a number above 0, or {width} of them: one per dimension "
            "of the flattened observation."
        )
    return limit
