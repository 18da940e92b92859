"""Rules by which episodes end, for environments in which they are known.

A rule is a function of batches, ``(obs, actions, next_obs)``, to one boolean per row, as world
models and planners take it; or "never". A model that knows the rule need not learn it from the few
rows at which episodes end. Most are made of operators and methods of arrays alone, so that JAX can
compile them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]
Rule = Callable[[Rows, Rows, Rows], npt.NDArray[np.bool_]]
NEVER = "never"


def _hopper(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    height, angle = next_obs[:, 0], next_obs[:, 1]
    within = (abs(next_obs[:, 1:]) < 100).all(axis=1)
    return ~(within & (height > 0.7) & (abs(angle) < 0.2))


def _walker(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    height, angle = next_obs[:, 0], next_obs[:, 1]
    return ~((height > 0.8) & (height < 2.0) & (abs(angle) < 1.0))


def _ant(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    height = next_obs[:, 0]
    return ~((abs(next_obs) < np.inf).all(axis=1) & (height >= 0.2) & (height <= 1.0))


def _humanoid(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    height = next_obs[:, 0]
    return ~((height > 1.0) & (height < 2.0))


def inverted_pendulum(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    return ~((abs(next_obs) < np.inf).all(axis=1) & (abs(next_obs[:, 1]) <= 0.2))


def _inverted_double_pendulum(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    first, second = (np.arctan2(next_obs[:, k], next_obs[:, 2 + k]) for k in (1, 2))
    return 0.6 * (np.cos(first) + np.cos(first + second)) <= 1.0


def _cart_pole(obs: Rows, actions: Rows, next_obs: Rows) -> npt.NDArray[np.bool_]:
    place, angle = next_obs[:, 0], next_obs[:, 2]
    return (abs(place) > 2.4) | (abs(angle) > 12 * np.pi / 180)


TERMINATIONS: dict[str, Rule | str] = {
    "CartPole-v1": _cart_pole,
    "Pendulum-v1": NEVER,
    "Reacher-v5": NEVER,
    "InvertedPendulum-v5": inverted_pendulum,
    "InvertedDoublePendulum-v5": _inverted_double_pendulum,
    "HalfCheetah-v5": NEVER,
    "Hopper-v5": _hopper,
    "Walker2d-v5": _walker,
    "Ant-v5": _ant,
    "Humanoid-v5": _humanoid,
}
"""Rules of environments as Gymnasium makes them, by their ids."""


def known_termination(env: str) -> Rule | str:
    """The rule of an environment, or "never"; ValueError if it is not known.

    >>> import numpy as np
    >>> from losse.envs.terminations import known_termination
    >>> upright, fallen = [0.0, 0.01, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]
    >>> rule = known_termination("InvertedPendulum-v5")
    >>> rule(np.zeros((2, 4)), np.zeros((2, 1)), np.array([upright, fallen]))
    array([False,  True])
    """
    if env not in TERMINATIONS:
        raise ValueError(
            f"how episodes of {env!r} end is not known: choose from {', '.join(TERMINATIONS)}, or "
            "let the model learn it."
        )
    return TERMINATIONS[env]
