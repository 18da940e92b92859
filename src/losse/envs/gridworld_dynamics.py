"""Dynamics of the Gridworld as pure functions of arrays: the truth that models learn.

Positions are points (x, y) of the unit square, with y upwards. Everything works on many at once, so
that a model's predictions can be compared with the truth at any number of places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from losse.typing import Array

N_ACTIONS = 4
DIRECTIONS: Array = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
"""Up, right, down, left: the actions 0 to 3."""
START_SIZE = 0.05
"""Episodes start where x and y are below this."""
GOAL_EDGE = 0.95
"""They end where x and y are above this."""
BARRIER = (0.5, 0.6)
"""The values of x that the barrier covers."""


class Layout(NamedTuple):
    """Choices about the square and the moves in it."""

    barrier: bool = True
    gap: tuple[float, float] = (0.4, 0.5)
    """The values of y where the barrier is open."""
    step_size: float = 0.05


def move(
    positions: ArrayLike, actions: ArrayLike, noise: ArrayLike = 0.0, layout: Layout | None = None
) -> Array:
    """Positions to which actions lead.

    A move goes `step_size + noise` in the direction of its action. One that would end inside the
    barrier ends where it began; one that would leave the square ends at its edge.

    Parameters
    ----------
    positions
        Points, of shape (n, 2).
    actions
        Actions 0 to 3, of shape (n,) or one for all.
    noise
        What is added to the length of each move, of shape (n,) or one for all.
    layout
        The barrier and the step size; by default those of `Layout()`.

    Examples
    --------
    >>> up, right = 0, 1
    >>> move([[0.2, 0.2], [0.2, 0.99], [0.48, 0.7], [0.48, 0.45]], [up, up, right, right])
    array([[0.2 , 0.25],
           [0.2 , 1.  ],
           [0.48, 0.7 ],
           [0.53, 0.45]])
    """
    layout = layout or Layout()
    positions = np.asarray(positions, dtype=np.float64)
    length = np.asarray(layout.step_size + np.asarray(noise, dtype=np.float64))
    moved = positions + length[..., None] * DIRECTIONS[np.asarray(actions)]
    blocked = in_barrier(moved, layout)
    return np.clip(np.where(blocked[..., None], positions, moved), 0.0, 1.0)


def in_barrier(positions: Array, layout: Layout) -> NDArray[np.bool_]:
    """Whether each point lies in the barrier.

    >>> in_barrier(np.array([[0.55, 0.3], [0.55, 0.45], [0.45, 0.3]]), Layout())
    array([ True, False, False])
    """
    x, y = positions[..., 0], positions[..., 1]
    inside = (x >= BARRIER[0]) & (x <= BARRIER[1])
    closed = (y < layout.gap[0]) | (y > layout.gap[1])
    return inside & closed & layout.barrier


def at_goal(positions: Array) -> NDArray[np.bool_]:
    """Whether each point lies in the goal.

    >>> at_goal(np.array([[0.96, 0.97], [0.96, 0.5]]))
    array([ True, False])
    """
    return (positions[..., 0] > GOAL_EDGE) & (positions[..., 1] > GOAL_EDGE)
