"""Start where the agent has been: anywhere (the paper's search control), or lately."""

from __future__ import annotations

from losse.dyna.units import Rows
from losse.dyna.visited import Visited

RECENT = 1000
"""Transitions that count as the present policy's."""


def uniform(visited: Visited, n: int) -> Rows:
    """States drawn uniformly from all that were visited."""
    return visited.obs(visited.any(n))


def recent(visited: Visited, n: int) -> Rows:
    """States drawn uniformly from the last that were visited, as the present policy visits them."""
    return visited.obs(visited.newest(n, RECENT))
