"""Pool of imagined transitions, the D_m of Algorithm 3: minibatches are drawn from it.

What was imagined is used for a while, as a replay buffer is, and not for one training call alone.
So an agent with many gradient steps per environment step needs few imagined rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from losse.world.transitions import Transitions


class Pool:
    """A ring of imagined transitions, in the environment's units.

    Parameters
    ----------
    capacity
        Rows that are kept; the oldest make way for new ones.

    Examples
    --------
    >>> pool = Pool(capacity=3)
    >>> pool.add(Transitions.from_steps([([0.0], 1, -1.0, [0.5], False)] * 2))
    >>> pool.add(Transitions.from_steps([([0.5], 1, 0.0, [1.0], True)] * 2))
    >>> len(pool), int(pool.draw(100, np.random.default_rng(0)).terminated.max())
    (3, 1)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns: dict[str, Any] = {}
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, made: Transitions) -> None:
        """Add transitions of dense arrays; of too many, the last are kept."""
        made = made.take(slice(-self.capacity, None))
        rows = (self._next + np.arange(len(made))) % self.capacity
        columns = Transitions(*made).columns  # a rollout has more
        if not self._columns:
            self._columns = {name: self._empty(column) for name, column in columns.items()}
        self._put(rows, columns)
        self._next = (self._next + len(made)) % self.capacity
        self._size = min(self._size + len(made), self.capacity)

    def draw(self, n: int, rng: np.random.Generator) -> Transitions:
        """Rows drawn uniformly, with repetition."""
        rows = rng.integers(self._size, size=n)
        drawn = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        return Transitions(**drawn)

    def state(self) -> dict[str, Any]:
        """Plain values that `restored` takes, the oldest row first."""
        rows = (self._next - self._size + np.arange(self._size)) % self.capacity
        columns = {name: np.asarray(column)[rows] for name, column in self._columns.items()}
        return {"capacity": self.capacity, "columns": columns}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Pool:
        """The pool that `state` has described."""
        pool = cls(state["capacity"])
        if state["columns"]:
            pool.add(Transitions(**state["columns"]))
        return pool

    def _empty(self, column: Any) -> Any:
        """Room for a column."""
        return np.zeros((self.capacity, *column.shape[1:]), column.dtype)

    def _put(self, rows: npt.NDArray[np.int64], columns: Mapping[str, Any]) -> None:
        """Write rows into the columns."""
        for name, column in columns.items():
            self._columns[name][rows] = column
