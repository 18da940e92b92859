"""Test of a model of the Gridworld at the centre of every cell, with every action."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from losse.envs.gridworld_dynamics import N_ACTIONS, Layout, at_goal, in_barrier, move
from losse.world.transitions import Transitions

CELLS = 20
"""Cells along each side. They are as wide as a step, and the barrier covers whole cells."""
TOLERANCE = 0.05
"""A prediction that is further than this from the true next position is wrong (figure 1).

It is the length of a step, so to predict no move is never wrong: wrong is what is worse than to
know nothing. `STRICT`, half a step, asks for the direction too.
"""
STRICT = 0.025
_ROUNDING = 1e-6  # positions are single precision
RECENT = 250
"""An agent is now where it was in so many last steps."""

Mask = NDArray[np.bool_]


class Model(Protocol):
    """Methods of a world model that are used here."""

    def update(self, *transitions: NDArray) -> None: ...
    def step(self, obs: NDArray, actions: NDArray) -> tuple[NDArray, NDArray, NDArray]: ...


class Places:
    """All pairs of a cell and an action: place k is action k % 4 at the centre of cell k // 4.

    >>> places = Places()
    >>> len(places.actions), int(places.possible.sum())
    (1600, 1452)
    >>> places.of(np.array([[0.01, 0.07]]), np.array([3]))
    array([7])
    """

    def __init__(self) -> None:
        centres = (np.arange(CELLS) + 0.5) / CELLS
        cells = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
        self.positions = np.repeat(cells, N_ACTIONS, axis=0)
        self.actions = np.tile(np.arange(N_ACTIONS), len(cells))

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """Positions that the actions lead to, without noise."""
        return move(self.positions, self.actions)

    @cached_property
    def possible(self) -> Mask:
        """Mask of places where an agent can act: not in the barrier, nor in the goal."""
        return ~in_barrier(self.positions, Layout()) & ~at_goal(self.positions)

    def of(self, obs: NDArray[np.floating], actions: NDArray[np.integer]) -> NDArray[np.int64]:
        """The places of these positions and actions."""
        column, row = np.minimum((CELLS * obs).astype(np.int64), CELLS - 1).T
        return (column * CELLS + row) * N_ACTIONS + actions

    def errors(self, model: Model) -> NDArray[np.float64]:
        """Distances of the model's next positions from the true ones."""
        predicted, _, _ = model.step(self.positions.astype(np.float32), self.actions)
        return np.linalg.norm(predicted - self.truth, axis=1)


class Frame(NamedTuple):
    """Test of a model after some steps; arrays have one entry per place."""

    step: int
    errors: NDArray[np.float64]
    seen: Mask
    """Visited so far."""
    recent: Mask
    """Visited in the last steps."""
    possible: Mask
    update_seconds: list[float]
    """What each update since the last frame took."""
    surprises: list[float]
    """Mean error of the predictions of each batch since then, before it was learned."""

    @property
    def wrong(self) -> Mask:
        """Mask of places with wrong predictions."""
        return self.errors > TOLERANCE + _ROUNDING

    @property
    def shares(self) -> dict[str, float]:
        """The shares of wrong predictions: where it was, where it is now, everywhere; if strict."""
        masks = {"seen": self.seen, "recent": self.recent, "all": self.possible}
        shares = {name: float(self.wrong[mask].mean()) for name, mask in masks.items()}
        shares["strict"] = float((self.errors[self.seen] > STRICT + _ROUNDING).mean())
        return shares

    @property
    def maps(self) -> dict[str, str]:
        """Actions of each cell that are wrong where visited, visited, and visited lately: digits.

        A text of one digit per cell makes a small record that can be read.
        """
        counts = {"wrong": self.wrong & self.seen, "seen": self.seen, "recent": self.recent}
        return {
            name: "".join(map(str, mask.reshape(-1, N_ACTIONS).sum(axis=1)))
            for name, mask in counts.items()
        }


def follow(
    stream: Transitions, model: Model, *, update_every: int, frame_every: int
) -> Iterator[Frame]:
    """Let a model learn a stream, and test it everywhere every so many steps and at the end."""
    places = Places()
    visited = places.of(stream.obs, stream.actions)
    seen = np.zeros(len(places.actions), dtype=bool)
    seconds: list[float] = []
    surprises: list[float] = []
    steps = len(visited)
    for first in range(0, steps, update_every):
        last = min(first + update_every, steps)
        new = stream.take(slice(first, last))
        predicted, _, _ = model.step(new.obs, new.actions)
        surprises.append(float(np.linalg.norm(predicted - new.next_obs, axis=1).mean()))
        began = perf_counter()
        model.update(*new)
        seconds.append(perf_counter() - began)
        seen[visited[first:last]] = True
        if last % frame_every == 0 or last == steps:
            recent = np.zeros_like(seen)
            recent[visited[max(0, last - RECENT) : last]] = True
            yield Frame(
                last, places.errors(model), seen.copy(), recent, places.possible, seconds, surprises
            )
            seconds, surprises = [], []
