"""Start where the agent's values are wrong, and one step before: prioritised sweeping.

A change of value at one state matters at those that lead to it (Moore and Atkeson, 1993; Peng and
Williams, 1993). Exact sweeping needs a table. Here a pool of visited transitions is drawn
uniformly, starts are drawn from it by their absolute TD error, and half of them step back to the
state that came before in the same episode.
"""

from __future__ import annotations

import numpy as np

from losse.dyna.units import Rows
from losse.dyna.visited import Visited

POOL = 4
"""Candidates for each start."""
FLOOR = 1e-6
"""Priority of a transition without any error."""


def prioritised(visited: Visited, n: int) -> Rows:
    """Visited states drawn by the agent's TD error, or the ones before them."""
    pool = visited.any(POOL * n)
    weights = visited.surprise(pool) + FLOOR
    total = weights.sum()
    # An agent that has diverged is found out elsewhere.
    shares = weights / total if np.isfinite(total) else None
    chosen = visited.rng.choice(pool, size=n, p=shares)
    back = visited.rng.random(n) < 0.5
    return visited.obs(np.where(back, visited.before(chosen), chosen))
