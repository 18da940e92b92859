"""Transitions of an environment: the five columns that world models learn from and imagine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transitions, one per row.

    Attributes
    ----------
    obs, actions, rewards, next_obs, terminated
        As `WorldModel.update` takes them, in the units of the environment.

    Examples
    --------
    >>> walk = [([0.0], 1, -1.0, [0.5], False), ([0.5], 1, 0.0, [1.0], True)]
    >>> data = Transitions.from_steps(walk)
    >>> len(data), data.obs.shape
    (2, (2, 1))
    >>> data.take(data.terminated).next_obs
    array([[1.]])
    >>> obs, actions, rewards, next_obs, terminated = data  # so model.update(*data)
    """

    obs: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    rewards: npt.NDArray[Any]
    next_obs: npt.NDArray[Any]
    terminated: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        yield from (self.obs, self.actions, self.rewards, self.next_obs, self.terminated)

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """Some of the rows: those of a slice, a mask or row numbers, which may repeat."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """All rows of at least one part, one part after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def from_steps(cls, steps: Iterable[tuple[Any, ...]]) -> Self:
        """Transitions of single steps, each a tuple of the columns' values."""
        return cls(*(np.array(column) for column in zip(*steps, strict=True)))
