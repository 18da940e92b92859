"""Flattened Gymnasium spaces: observations and actions as rows of numbers, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import LARGEST
from losse.scaling import WIDEST, Scaling, bounded
from losse.typing import Array

# Differences of two observations must still be targets that a regressor takes.
_LARGEST = LARGEST / 2
# Beyond these, neighbouring integers are not told apart by doubles.
_WHOLE = 2.0**53
# Bounds are often kept in single precision: actions may overstep them by its rounding.
_ROUNDING = 1e-6


class FlatSpace(ABC):
    """A space whose values become rows of numbers.

    Attributes
    ----------
    space
        The space itself.
    width
        Numbers of a row.
    discrete
        Whether the space is a single choice, so that `inputs` are numbers from 0.
    """

    discrete = False

    def __init__(self, space: spaces.Space[Any], width: int) -> None:
        self.space = space
        self.width = width

    @abstractmethod
    def rows(self, name: str, values: Any, n_rows: int | None = None) -> Array:
        """Checked values, one row of ``width`` numbers each; ``n_rows`` of them, if given."""

    @abstractmethod
    def restore(self, rows: Array) -> npt.NDArray[Any]:
        """The values of the space that are nearest to rows, in its dtype and shape."""

    @abstractmethod
    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """Scaling of each number by its bounds, to [-limit, limit], and the limits to clip to.

        The shift is NaN, and the factor 1, of a number that has no bounds to go by.
        """

    def inputs(self, name: str, values: Any, n_rows: int | None = None) -> npt.NDArray[Any]:
        """Checked actions as models take them: rows, or choices counted from 0."""
        return self.rows(name, values, n_rows)

    def none(self) -> npt.NDArray[Any]:
        """A batch without values, in the space's dtype and shape."""
        return self.restore(np.empty((0, self.width)))


class FlatBox(FlatSpace):
    """Numbers of a `Box` of any shape."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space, math.prod(space.shape))
        self._shape = space.shape
        self._low = np.asarray(space.low, dtype=np.float64).reshape(-1)
        self._high = np.asarray(space.high, dtype=np.float64).reshape(-1)

    def rows(self, name: str, values: Any, n_rows: int | None = None) -> Array:
        """See `FlatSpace`."""
        array = numbers(name, values)
        _check_shape(name, array, self._shape, self.space, n_rows)
        require_moderate(name, array)
        return np.ascontiguousarray(array.reshape(len(array), self.width))

    def inputs(self, name: str, values: Any, n_rows: int | None = None) -> Array:
        """Rows that also lie within the bounds, as actions must."""
        rows = self.rows(name, values, n_rows)
        outside = rows < self._low - _ROUNDING * np.maximum(1, np.abs(self._low))
        outside |= rows > self._high + _ROUNDING * np.maximum(1, np.abs(self._high))
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise ValueError(
                f"{name} contains {rows[place]} in row {place[0]}, outside {self.space}: clip or "
                "rescale to the space's bounds."
            )
        return rows

    def restore(self, rows: Array) -> npt.NDArray[Any]:
        """See `FlatSpace`."""
        clipped = np.clip(rows, self._low, self._high)
        if np.issubdtype(self.space.dtype, np.integer):
            clipped = np.clip(np.rint(clipped), -_WHOLE, _WHOLE)
        return clipped.astype(self.space.dtype).reshape(len(rows), *self._shape)

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """See `FlatSpace`."""
        known = self._high - self._low <= WIDEST
        low, high = (np.where(known, bound, np.nan) for bound in (self._low, self._high))
        return bounded(low, high, limit), np.full(self.width, limit)


class FlatDiscrete(FlatSpace):
    """Choices of a `Discrete` space, one-hot."""

    discrete = True

    def __init__(self, space: spaces.Discrete) -> None:
        super().__init__(space, int(space.n))
        self._start = int(space.start)

    def inputs(self, name: str, values: Any, n_rows: int | None = None) -> npt.NDArray[np.int64]:
        """Checked choices, counted from 0."""
        array = np.asarray(values)
        if array.ndim != 1:
            hint = f" Pass {name}[:, 0]." if array.ndim == 2 and array.shape[1] == 1 else ""
            raise ValueError(
                f"{name} has shape {array.shape}, expected (n,): one element of {self.space} per "
                f"row.{hint}"
            )
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"{name} has dtype {array.dtype}, but {self.space} holds integers.")
        _check_length(name, array, n_rows)
        outside = (array < self._start) | (array >= self._start + self.width)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"{name} contains {array[row]} in row {row}, outside {self.space}: elements run "
                f"from {self._start} to {self._start + self.width - 1}."
            )
        # Small integer types would wrap around.
        return np.asarray(array.astype(np.int64) - self._start)

    def rows(self, name: str, values: Any, n_rows: int | None = None) -> Array:
        """See `FlatSpace`."""
        return one_hot(self.inputs(name, values, n_rows), self.width)

    def restore(self, rows: Array) -> npt.NDArray[Any]:
        """The likeliest choices."""
        return (np.argmax(rows, axis=1) + self._start).astype(self.space.dtype)

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """A factor that makes the mean square of one-hot entries one."""
        n = self.width
        return Scaling(np.zeros(n), np.full(n, np.sqrt(n))), np.full(n, np.inf)


def flat(name: str, space: spaces.Space[Any]) -> FlatSpace:
    """The flattened form of a space; raises `TypeError` for one that world models do not know.

    >>> flat("observation_space", spaces.Discrete(3, start=1)).rows("obs", [1, 3])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    >>> flat("action_space", spaces.MultiBinary(2))
    Traceback (most recent call last):
    ...
    TypeError: action_space=MultiBinary(2) is not supported: ...
    """
    if isinstance(space, spaces.Discrete):
        return FlatDiscrete(space)
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind in "fiu":
        return FlatBox(space)
    raise TypeError(
        f"{name}={space!r} is not supported: world models know Box (of numbers, any shape) and "
        "Discrete. Wrap the environment, for example with gymnasium.wrappers.FlattenObservation."
    )


def one_hot(choices: npt.NDArray[np.int64], width: int) -> Array:
    """Rows of zeros with a one at each choice.

    >>> one_hot(np.array([1, 0]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    rows = np.zeros((len(choices), width))
    rows[np.arange(len(choices)), choices] = 1.0
    return rows


def numbers(name: str, values: Any) -> Array:
    """Anything that NumPy reads as real numbers, as doubles."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{array.dtype} is not a type of real numbers")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is not an array of numbers: {error}.") from error


def require_moderate(name: str, array: Array) -> None:
    """Raise `ValueError` for NaN, infinity, and numbers whose squares leave the range of doubles.

    >>> require_moderate("rewards", np.array([0.0, np.nan]))
    Traceback (most recent call last):
    ...
    ValueError: rewards contains nan at (1,): ...
    """
    if not array.size or np.abs(array).max() <= _LARGEST:  # false for NaN, too
        return
    place = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= _LARGEST))[0])
    raise ValueError(
        f"{name} contains {array[place]} at {place}: only finite numbers of size up to "
        f"{_LARGEST:.0e} can be learned from; find out what the environment did there, and leave "
        "such transitions out."
    )


def _check_shape(
    name: str,
    array: npt.NDArray[Any],
    expected: tuple[int, ...],
    space: spaces.Space[Any],
    n_rows: int | None,
) -> None:
    if array.shape[1:] != expected or array.ndim != len(expected) + 1:
        hint = f" For a single one pass {name}[None]." if array.shape == expected else ""
        raise ValueError(
            f"{name} has shape {array.shape}, expected ({', '.join(map(str, ('n', *expected)))}"
            f"{'' if expected else ','}): one entry of {space} per row.{hint}"
        )
    _check_length(name, array, n_rows)


def _check_length(name: str, array: npt.NDArray[Any], n_rows: int | None) -> None:
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} rows, but obs has {n_rows}: pass one each.")
