"""How a replay buffer is pickled: without the places that no transition has filled yet."""

from __future__ import annotations

from typing import Any

import numpy as np

_COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def packed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a buffer with columns that end where its data do.

    >>> state = {"full": False, "pos": 2, "buffer_size": 100, "rewards": np.zeros((100, 1))}
    >>> packed(state)["rewards"].shape
    (2, 1)
    """
    if state["full"]:
        return state
    filled = {name: state[name][: state["pos"]].copy() for name in _COLUMNS if name in state}
    return state | filled


def unpacked(state: dict[str, Any]) -> dict[str, Any]:
    """The state that `packed` was given.

    >>> state = {"full": False, "pos": 2, "buffer_size": 100, "rewards": np.ones((2, 1))}
    >>> unpacked(state)["rewards"].shape
    (100, 1)
    """
    if state["full"]:
        return state
    whole = {}
    for name in _COLUMNS:
        if name in state:
            short = state[name]
            whole[name] = np.zeros((state["buffer_size"], *short.shape[1:]), dtype=short.dtype)
            whole[name][: len(short)] = short
    return state | whole
