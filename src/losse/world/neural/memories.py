"""Memories of neural world models: all transitions, the latest, or a uniform sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from losse.storage.state import State, StateReader

Rows = npt.NDArray[np.float32]

CAPACITY = 1 << 16
"""Rows for which room is made first, and then four times as many whenever there is none left.

Training is compiled for an array of this length, whatever part of it is filled: most runs
compile once.
"""
BYTES = 1 << 26
"""Bytes that the first room may take: fewer rows of it where rows are very wide."""
_MOST = 1 << 40

MEMORIES = ("full-replay", "online", "si", "coreset")
"""The paper's neural baselines, by what they remember."""


class Everything:
    """All rows ever, or as many as there may be.

    Examples
    --------
    >>> memory = Everything(width=2)
    >>> memory.add(np.ones((3, 2), np.float32))
    >>> memory.count, memory.rows.shape
    (3, (65536, 2))
    """

    def __init__(self, width: int, most: int = _MOST) -> None:
        self.rows: Rows = np.zeros((0, width), np.float32)
        self.count = 0
        self._most = most

    def add(self, new: Rows) -> None:
        """Keep new rows."""
        end = self.count + len(new)
        self._make_room(end)
        self.rows[self.count : end] = new
        self.count = end

    def _make_room(self, needed: int) -> None:
        """Let there be room for some rows; none is made before the first."""
        width, length = self.rows.shape[1], len(self.rows)
        if needed <= length:
            return
        if length == 0:
            length = CAPACITY
            while length > 1 and 4 * length * width > BYTES:
                length //= 4
        while length < needed:
            length *= 4
        grown = np.zeros((min(length, self._most), width), np.float32)
        grown[: len(self.rows)] = self.rows
        self.rows = grown

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"count": self.count, "rows": self.rows[: self.count]}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._read(saved, saved.count("count", at_most=self._most))

    def _read(self, saved: StateReader, count: int) -> None:
        saved.require_shape("rows", (count, self.rows.shape[1]), np.float32)
        self._make_room(count)
        saved.array("rows", out=self.rows[:count])
        self.count = count


class Recent:
    """The last rows, oldest first, at the end of an array of fixed length.

    Examples
    --------
    >>> memory = Recent(3, width=1)
    >>> memory.add(np.array([[1.0], [2.0]], np.float32))
    >>> memory.count, memory.rows[:, 0]
    (2, array([0., 1., 2.], dtype=float32))
    """

    def __init__(self, length: int, width: int) -> None:
        self.rows: Rows = np.zeros((length, width), np.float32)
        self.count = 0

    def add(self, new: Rows) -> None:
        """Keep new rows, and forget as many of the oldest."""
        length = len(self.rows)
        self.rows = np.concatenate([self.rows, new])[-length:]
        self.count = min(self.count + len(new), length)

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"count": self.count, "rows": self.rows[len(self.rows) - self.count :]}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.count = saved.count("count", at_most=len(self.rows))
        saved.array("rows", out=self.rows[len(self.rows) - self.count :])


class Reservoir(Everything):
    """A sample of a stream in which each of its rows is with the same probability.

    Vitter's algorithm R: row number t takes a random one of t places, if the reservoir has it. The
    sample does not depend on how the stream is cut into batches.

    Examples
    --------
    >>> memory = Reservoir(5, width=1, seed=0)
    >>> memory.add(np.arange(1000, dtype=np.float32)[:, None])
    >>> memory.count, memory.n_seen
    (5, 1000)
    """

    def __init__(self, size: int, width: int, seed: int) -> None:
        super().__init__(width, size)
        self.n_seen = 0
        self._seed = seed
        self._random = np.random.Generator(np.random.PCG64(seed))

    def add(self, new: Rows) -> None:
        """Take each new row in by its chance."""
        numbers = self.n_seen + np.arange(len(new))
        places = (self._random.random(len(new)) * (numbers + 1)).astype(np.int64)
        places = np.where(numbers < self._most, numbers, places)
        taken = places < self._most
        self.n_seen += len(new)
        self.count = min(self.n_seen, self._most)
        self._make_room(self.count)
        # In order of time: of rows that take the same place, the last one stays.
        for place, row in zip(places[taken], new[taken], strict=True):
            self.rows[place] = row

    def state(self) -> State:
        """Values for a checkpoint."""
        return {"n_seen": self.n_seen, "rows": self.rows[: self.count]}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.n_seen = saved.count("n_seen", at_most=_MOST)
        self._read(saved, min(self.n_seen, self._most))
        # One draw for each row so far.
        self._random = np.random.Generator(np.random.PCG64(self._seed).advance(self.n_seen))
