"""Transitions of an environment: the five columns that world models learn from and imagine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Values = Any
"""A batch of observations or actions: an array, or a dict or tuple of batches."""


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

    obs: Values
    actions: Values
    rewards: npt.NDArray[Any]
    next_obs: Values
    terminated: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)

    def __iter__(self) -> Iterator[Values]:
        yield from (self.obs, self.actions, self.rewards, self.next_obs, self.terminated)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """Some of the rows: those of a slice, a mask or row numbers, which may repeat."""
        return type(self)(*(take(getattr(self, field.name), rows) for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """All rows of at least one part, one part after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def from_steps(cls, steps: Iterable[tuple[Any, ...]]) -> Self:
        """Transitions of single steps, each a tuple of the columns' values."""
        return cls(*(stack(column) for column in zip(*steps, strict=True)))


def take(values: Values, rows: Any) -> Values:
    """Some rows of a batch, or a single one.

    >>> take({"place": np.arange(3), "goal": np.ones(3)}, [2, 0])
    {'place': array([2, 0]), 'goal': array([1., 1.])}
    """
    return _mapped(lambda array: array[rows], values)


def concatenate(batches: Sequence[Values]) -> Values:
    """The rows of at least one batch, one batch after the other."""
    return _mapped(lambda *arrays: np.concatenate(arrays), *batches)


def stack(items: Sequence[Values]) -> Values:
    """A batch of at least one single observation or action."""
    return _mapped(lambda *values: np.array(values), *items)


def _mapped(function: Callable[..., Any], first: Values, *others: Values) -> Values:
    """A function of the arrays that have the same place in dicts and tuples."""
    if isinstance(first, Mapping):
        return {
            key: _mapped(function, value, *(other[key] for other in others))
            for key, value in first.items()
        }
    if isinstance(first, tuple):
        return tuple(_mapped(function, *parts) for parts in zip(first, *others, strict=True))
    return function(first, *others)
