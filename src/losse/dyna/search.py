"""From which states is imagined?  The search control of Algorithm 3, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from losse.dyna.search_climbing import climbed
from losse.dyna.search_prioritised import prioritised
from losse.dyna.search_visited import recent, uniform
from losse.dyna.units import Rows
from losse.dyna.visited import Visited


class SearchControl(NamedTuple):
    """A way to choose the states from which imagination starts.

    Attributes
    ----------
    starts
        A function of what was visited and a number to that many observations.
    own_actions
        Whether actions are those that the agent would take itself, its exploration included.
        Otherwise a part of them is drawn uniformly, so that imagination explores.
    continuous
        Whether observations must be real numbers.
    """

    starts: Callable[[Visited, int], Rows]
    own_actions: bool = False
    continuous: bool = False


SEARCH_CONTROLS = {
    "uniform": SearchControl(uniform),
    "on-policy": SearchControl(recent, own_actions=True),
    "prioritised": SearchControl(prioritised),
    "hill-climbing": SearchControl(climbed, continuous=True),
}


def require_suitable(name: str, observation_space: spaces.Space[Any]) -> None:
    """Raise `ValueError` if a search control cannot work on these observations.

    >>> require_suitable("hill-climbing", spaces.Discrete(3))
    Traceback (most recent call last):
    ...
    ValueError: search_control='hill-climbing' needs real observations, not Discrete(3): ...
    """
    real = observation_space.dtype is not None and np.issubdtype(
        observation_space.dtype, np.floating
    )
    if SEARCH_CONTROLS[name].continuous and not real:
        others = [other for other, control in SEARCH_CONTROLS.items() if not control.continuous]
        raise ValueError(
            f"search_control={name!r} needs real observations, not {observation_space}: use one "
            f"of {', '.join(others)}."
        )
