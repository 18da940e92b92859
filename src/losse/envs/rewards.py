"""Rewards, for environments in which they or their costs of actions are known.

They are functions of batches, ``(obs, actions, next_obs)``, to one number per row, as world models
and planners take them. A model that knows a cost learns the rest, see `losse.world.PartlyKnown`.
Most are made of operators and methods of arrays alone, so that JAX can compile them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from losse.envs.terminations import inverted_pendulum

Rows = npt.NDArray[Any]
Reward = Callable[[Rows, Rows, Rows], Rows]


def _cart_pole(obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
    return next_obs[:, 0] * 0.0 + 1.0


def _upright(obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
    return 1.0 - inverted_pendulum(obs, actions, next_obs)


def _pendulum(obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
    angle = np.arctan2(obs[:, 1], obs[:, 0])
    cost: Rows = angle**2 + 0.1 * obs[:, 2] ** 2 + 0.001 * actions[:, 0] ** 2
    return -cost


REWARDS: Mapping[str, Reward] = {
    "CartPole-v1": _cart_pole,
    "Pendulum-v1": _pendulum,
    "InvertedPendulum-v5": _upright,
}
"""Rewards of environments as Gymnasium makes them, by their ids."""


@dataclass(frozen=True)
class ControlCost:
    """Minus a weight times the sum of squared actions.

    >>> import numpy as np
    >>> ControlCost(0.5)(np.zeros((2, 3)), np.array([[1.0, 2.0], [0.0, 1.0]]), np.zeros((2, 3)))
    array([-2.5, -0.5])
    """

    weight: float

    def __call__(self, obs: Rows, actions: Rows, next_obs: Rows) -> Rows:
        cost: Rows = -self.weight * (actions**2).sum(axis=1)
        return cost


WEIGHT = "ctrl_cost_weight"
"""The option of these environments that is the weight of the cost."""

WEIGHTS: Mapping[str, float] = {
    "HalfCheetah-v5": 0.1,
    "Hopper-v5": 1e-3,
    "Walker2d-v5": 1e-3,
    "Ant-v5": 0.5,
    "Humanoid-v5": 0.1,
}
"""Weights of environments as Gymnasium makes them, by their ids."""


def known_reward(env: str) -> Reward:
    """The whole reward of an environment; ValueError if it is not known.

    >>> rows = np.zeros((2, 4))
    >>> known_reward("CartPole-v1")(rows, np.array([0, 1]), rows)
    array([1., 1.])
    """
    if env not in REWARDS:
        hint = ", or a part of it (partly-known)" if env in WEIGHTS else ""
        raise ValueError(
            f"the reward of {env!r} is not known: choose from {', '.join(REWARDS)}, or let the "
            f"model learn it{hint}."
        )
    return REWARDS[env]


def control_cost(env: str, options: Mapping[str, Any] | None = None) -> ControlCost:
    """The part of an environment's rewards that is the cost of actions; ValueError if unknown.

    Parameters
    ----------
    env
        Id of an environment, such as HalfCheetah-v5.
    options
        Arguments that the environment is made with, if any: they may have another weight.

    Examples
    --------
    >>> control_cost("HalfCheetah-v5")
    ControlCost(weight=0.1)
    >>> control_cost("HalfCheetah-v5", {"ctrl_cost_weight": 0.2})
    ControlCost(weight=0.2)
    """
    if env not in WEIGHTS:
        raise ValueError(
            f"no part of the reward of {env!r} is known: choose from {', '.join(WEIGHTS)}, or let "
            "the model learn it."
        )
    return ControlCost(float((options or {}).get(WEIGHT, WEIGHTS[env])))
