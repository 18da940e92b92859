"""What the Gridworld looks like: an array of pixels, painted with NumPy alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from losse.envs.gridworld_dynamics import START_SIZE, Layout, at_goal, in_barrier

PIXELS = 400
RADIUS = 0.015
FLOOR, WALL = (255, 255, 255), (90, 90, 90)
START, GOAL, AGENT = (240, 228, 66), (0, 158, 115), (0, 114, 178)


def paint(position: NDArray[np.float64], layout: Layout) -> NDArray[np.uint8]:
    """The square with the agent in it, of shape (PIXELS, PIXELS, 3); row 0 is the top.

    >>> picture = paint(np.array([0.5, 0.45]), Layout())
    >>> picture.shape, tuple(picture[0, -1].tolist()) == GOAL
    ((400, 400, 3), True)
    """
    centres = (np.arange(PIXELS) + 0.5) / PIXELS
    places = np.stack(np.meshgrid(centres, centres[::-1]), axis=-1)
    picture = np.full((PIXELS, PIXELS, 3), FLOOR, dtype=np.uint8)
    picture[(places < START_SIZE).all(axis=-1)] = START
    picture[at_goal(places)] = GOAL
    picture[in_barrier(places, layout)] = WALL
    picture[((places - position) ** 2).sum(axis=-1) <= RADIUS**2] = AGENT
    return picture
