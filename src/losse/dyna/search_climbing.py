"""Start on the way to where the agent expects most: hill climbing on its value estimate.

After Pan, Yao, Farahmand and White (2019), who follow the gradient of the value. Here a step in a
random direction is taken if the value rises, which needs no gradient and so works for every agent.
Starts are taken from all along the ways, so that values can flow back. States stay within the
range of those visited.
"""

from __future__ import annotations

import numpy as np

from losse.dyna.units import Rows
from losse.dyna.visited import Visited

STEPS = 4
STRIDE = 0.1
"""Of a step: its deviation, in standard deviations of the visited states."""


def climbed(visited: Visited, n: int) -> Rows:
    """Visited states, and states up to four steps uphill from them."""
    here = visited.obs(visited.any(n))
    low, high = here.min(axis=0), here.max(axis=0)
    stride = STRIDE * here.std(axis=0)
    value = visited.values(here)
    goes_on = visited.rng.integers(1 + STEPS, size=n)
    for step in range(STEPS):
        there = here + stride * visited.rng.normal(size=here.shape)
        there = np.clip(there, low, high).astype(here.dtype)
        value_there = visited.values(there)
        better = (value_there > value) & (step < goes_on)
        here = np.where(better.reshape(-1, *[1] * (here.ndim - 1)), there, here)
        value = np.where(better, value_there, value)
    return here
