"""Imagined episodes: many short ones at once, as one flat list of transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count
from losse.typing import Array
from losse.world.spaces import numbers

if TYPE_CHECKING:
    from losse.world.model import WorldModel

Policy = Callable[[npt.NDArray[Any]], npt.ArrayLike]


@dataclass(frozen=True)
class Rollout:
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

    obs: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    rewards: Array
    next_obs: npt.NDArray[Any]
    terminated: npt.NDArray[np.bool_]
    step: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rewards)


def roll_out(
    model: WorldModel, obs: npt.ArrayLike, policy: Policy, horizon: int, max_std: Any
) -> Rollout:
    """See `WorldModel.rollout`."""
    check_count("horizon", horizon)
    limit = None if max_std is None else _limit(max_std, model._observations.width)
    model._observations.rows("obs", obs)  # refused before the policy sees it
    current = np.asarray(obs, dtype=model.observation_space.dtype)
    alive = np.arange(len(current))
    steps = []
    for depth in range(horizon):
        # At depth 0 also without rows, for the dtypes and shapes of the result.
        if depth and not len(alive):
            break
        actions = np.asarray(policy(current)) if len(current) else _no_actions(model)
        if limit is None:
            next_obs, rewards, terminated = model.step(current, actions)
        else:
            next_obs, rewards, terminated, std = model.step(current, actions, return_std=True)
            sure = (std <= limit).all(axis=1)
            current, actions, alive = current[sure], actions[sure], alive[sure]
            next_obs, rewards, terminated = next_obs[sure], rewards[sure], terminated[sure]
        depths = np.full(len(alive), depth)
        steps.append(Rollout(current, actions, rewards, next_obs, terminated, depths, alive))
        current, alive = next_obs[~terminated], alive[~terminated]
    return Rollout(
        *(np.concatenate([getattr(s, part.name) for s in steps]) for part in fields(Rollout))
    )


def _limit(max_std: Any, width: int) -> Array:
    limit = numbers("max_std", max_std)
    if limit.shape not in ((), (width,)) or not (limit > 0).all():
        raise ValueError(
            f"max_std={max_std!r} must be a number above 0, or {width} of them: one per dimension "
            "of the flattened observation."
        )
    return limit


def _no_actions(model: WorldModel) -> npt.NDArray[Any]:
    return np.empty((0, *(model.action_space.shape or ())), dtype=model.action_space.dtype)
