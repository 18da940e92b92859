"""Flattened Gymnasium spaces: observations and actions as rows of numbers, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import LARGEST, require_unmasked
from losse.scaling import WIDEST, Scaling, bounded
from losse.storage.state import shorten
from losse.typing import Array
from losse.world.transitions import Values

# Differences of two observations must still be targets that a regressor takes.
_LARGEST = LARGEST / 2
# Beyond these, neighbouring integers are not told apart by doubles.
_WHOLE = 2.0**53
# Bounds are often kept in single precision: actions may overstep them by its rounding.
_ROUNDING = 1e-6
# Numbers of a row that still fit into memory, some rows at a time.
_WIDEST = 1 << 24
# Two sides from which an array of bytes is an image.
_IMAGE = 32


class FlatSpace(ABC):
    """A space whose values become rows of numbers, as `gymnasium.spaces.flatten` makes them.

    Attributes
    ----------
    space
        The space itself.
    width
        Numbers of a row.
    discrete
        Whether the space is a single choice, so that `inputs` are numbers from 0.
    continuous
        Whether some of its values are numbers rather than choices.
    """

    discrete = False
    continuous = False

    def __init__(self, space: spaces.Space[Any], width: int) -> None:
        self.space = space
        self.width = width

    @abstractmethod
    def rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        """Checked values, one row of ``width`` numbers each; ``n_rows`` of them, if given."""

    @abstractmethod
    def restore(self, rows: Array) -> Values:
        """The values of the space that are nearest to rows, in its dtype and shape."""

    @abstractmethod
    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """Scaling of each number by its bounds, to [-limit, limit], and the limits to clip to.

        The shift is NaN, and the factor 1, of a number that has no bounds to go by.
        """

    def bounded_rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        """Rows of values that also lie within the bounds, as actions must."""
        return self.rows(name, values, n_rows)

    def inputs(self, name: str, values: Values, n_rows: int | None = None) -> npt.NDArray[Any]:
        """Checked actions as models take them: rows, or choices counted from 0."""
        return self.bounded_rows(name, values, n_rows)

    def cast(self, values: Values) -> Values:
        """Checked values as arrays of the space's dtype."""
        return np.asarray(values, dtype=self.space.dtype)

    def single(self, value: Values) -> Values:
        """A batch of one value."""
        return np.asarray(value)[None]

    def none(self) -> Values:
        """A batch without values, in the space's dtype and shape."""
        return self.restore(np.empty((0, self.width)))


class FlatBox(FlatSpace):
    """Numbers of a `Box` of any shape."""

    continuous = True

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space, math.prod(space.shape))
        self._shape = space.shape
        self._low = np.asarray(space.low, dtype=np.float64).reshape(-1)
        self._high = np.asarray(space.high, dtype=np.float64).reshape(-1)

    def rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        array = numbers(name, values)
        _check_shape(name, array, self.space, n_rows)
        require_moderate(name, array)
        return np.ascontiguousarray(array.reshape(len(array), self.width))

    def bounded_rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
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
        clipped = np.clip(rows, self._low, self._high)
        if np.issubdtype(self.space.dtype, np.integer):
            clipped = np.clip(np.rint(clipped), -_WHOLE, _WHOLE)
        return clipped.astype(self.space.dtype).reshape(len(rows), *self._shape)

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        known = self._high - self._low <= WIDEST
        low, high = (np.where(known, bound, np.nan) for bound in (self._low, self._high))
        return bounded(low, high, limit), np.full(self.width, limit)


class FlatChoices(FlatSpace):
    """Choices of a `Discrete` or `MultiDiscrete` space, each one-hot."""

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete) -> None:
        self.discrete = isinstance(space, spaces.Discrete)
        counts = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.reshape(-1)
        super().__init__(space, sum(map(int, counts)))
        self._counts = np.array(counts, dtype=np.int64)
        self._first = np.asarray(space.start, dtype=np.int64).reshape(-1)
        self._ends = np.cumsum(self._counts)

    def rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        choices = self._choices(name, values, n_rows)
        return one_hot(choices + (self._ends - self._counts), self.width)

    def inputs(self, name: str, values: Values, n_rows: int | None = None) -> npt.NDArray[Any]:
        if not self.discrete:
            return self.rows(name, values, n_rows)
        return self._choices(name, values, n_rows)[:, 0]

    def restore(self, rows: Array) -> npt.NDArray[Any]:
        """The likeliest choices."""
        parts = np.split(rows, self._ends[:-1], axis=1)
        choices = np.stack([np.argmax(part, axis=1) for part in parts], axis=1) + self._first
        return choices.astype(self.space.dtype).reshape(len(rows), *(self.space.shape or ()))

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """A factor that makes the mean square of one-hot entries one."""
        factor = np.repeat(np.sqrt(self._counts), self._counts)
        return Scaling(np.zeros(self.width), factor), np.full(self.width, np.inf)

    def _choices(self, name: str, values: Values, n_rows: int | None) -> npt.NDArray[np.int64]:
        """Checked choices, counted from 0, (n, number of choices)."""
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"{name} has dtype {array.dtype}, but {self.space} holds integers.")
        _check_shape(name, array, self.space, n_rows)
        array = array.reshape(len(array), len(self._counts))
        last = self._first + (self._counts - 1)
        outside = (array < self._first) | (array > last)
        if outside.any():
            row, k = (int(i) for i in np.argwhere(outside)[0])
            raise ValueError(
                f"{name} contains {array[row, k]} in row {row}, outside {self.space}: elements run "
                f"from {self._first[k]} to {last[k]}."
            )
        # Small integer types would wrap around.
        return array.astype(np.int64) - self._first


class FlatBits(FlatSpace):
    """Bits of a `MultiBinary` space of any shape."""

    def __init__(self, space: spaces.MultiBinary) -> None:
        super().__init__(space, math.prod(space.shape))

    def rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        array = numbers(name, values)
        _check_shape(name, array, self.space, n_rows)
        if not ((array == 0) | (array == 1)).all():
            raise ValueError(f"{name} contains values other than 0 and 1, outside {self.space}.")
        return np.ascontiguousarray(array.reshape(len(array), self.width))

    def restore(self, rows: Array) -> npt.NDArray[Any]:
        """The likelier value of each bit."""
        return (rows > 0.5).astype(self.space.dtype).reshape(len(rows), *(self.space.shape or ()))

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        """Bits become -1 and 1."""
        return Scaling(np.full(self.width, 0.5), np.full(self.width, 2.0)), np.ones(self.width)


class FlatParts(FlatSpace):
    """Parts of a `Dict` or `Tuple` space, side by side."""

    def __init__(self, name: str, space: spaces.Dict | spaces.Tuple) -> None:
        self._named = isinstance(space, spaces.Dict)
        named = space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        self._parts = {key: flat(f"{name}[{key!r}]", part) for key, part in named.items()}
        self._ends = np.cumsum([part.width for part in self._parts.values()])
        self.continuous = any(part.continuous for part in self._parts.values())
        super().__init__(space, sum(part.width for part in self._parts.values()))

    def rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        return self._joined("rows", name, values, n_rows)

    def bounded_rows(self, name: str, values: Values, n_rows: int | None = None) -> Array:
        return self._joined("bounded_rows", name, values, n_rows)

    def restore(self, rows: Array) -> Values:
        columns = np.split(rows, self._ends[:-1], axis=1)
        parts = zip(self._parts.items(), columns, strict=True)
        return self._together({key: part.restore(column) for (key, part), column in parts})

    def scaling(self, limit: float) -> tuple[Scaling, Array]:
        return joined(*(part.scaling(limit) for part in self._parts.values()))

    def cast(self, values: Values) -> Values:
        return self._together({key: part.cast(values[key]) for key, part in self._parts.items()})

    def single(self, value: Values) -> Values:
        return self._together({key: part.single(value[key]) for key, part in self._parts.items()})

    def _together(self, values: dict[Any, Values]) -> Values:
        return values if self._named else tuple(values.values())

    def _joined(self, verb: str, name: str, values: Values, n_rows: int | None) -> Array:
        """Checked rows of all parts, side by side."""
        given = dict(enumerate(values)) if isinstance(values, tuple) else values
        right = Mapping if self._named else tuple
        if not isinstance(values, right) or given.keys() != self._parts.keys():
            form = f"a dict with the keys {list(self._parts)}" if self._named else (
                f"a tuple of {len(self._parts)}"
            )  # fmt: skip
            raise TypeError(
                f"{name} must be {form}: one batch for each part of {self.space}. "
                f"It is {shorten(repr(values), 100)}"
            )
        columns = []
        for key, part in self._parts.items():
            columns.append(getattr(part, verb)(f"{name}[{key!r}]", given[key], n_rows))
            n_rows = len(columns[0])
        return np.concatenate(columns, axis=1)


def joined(*parts: tuple[Scaling, Array]) -> tuple[Scaling, Array]:
    """Scalings and limits of columns that stand side by side."""
    scalings, limits = zip(*parts, strict=True)
    shift, factor = map(np.concatenate, zip(*scalings, strict=True))
    return Scaling(shift, factor), np.concatenate(limits)


def flat(name: str, space: spaces.Space[Any]) -> FlatSpace:
    """The flattened form of a space; raises `TypeError` for one that world models do not know.

    >>> flat("observation_space", spaces.Discrete(3, start=1)).rows("obs", [1, 3])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    >>> buttons = spaces.Dict(press=spaces.MultiBinary(2), speed=spaces.Box(0, 1, (1,)))
    >>> flat("action_space", buttons).rows("actions", {"press": [[1, 0]], "speed": [[0.5]]})
    array([[1. , 0. , 0.5]])
    >>> flat("action_space", spaces.Text(3))
    Traceback (most recent call last):
    ...
    TypeError: action_space=Text(...) is not supported: ...
    """
    flattened: FlatSpace | None = None
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        flattened = FlatChoices(space)
    elif isinstance(space, spaces.MultiBinary):
        flattened = FlatBits(space)
    elif isinstance(space, spaces.Dict | spaces.Tuple):
        flattened = FlatParts(name, space)
    elif isinstance(space, spaces.Box) and np.dtype(space.dtype).kind in "fiu":
        if _is_image(space):
            raise TypeError(
                f"{name}={space!r} holds images, and world models learn from vectors of numbers: "
                "use an environment that shows its state (for Atari, obs_type='ram'), or let an "
                "encoder of your own turn images into vectors, for example with "
                "gymnasium.wrappers.TransformObservation."
            )
        flattened = FlatBox(space)
    if flattened is not None and flattened.width > _WIDEST:
        raise TypeError(
            f"{name}={space!r} is too large: {flattened.width} numbers a row, where {_WIDEST} are "
            "the most. Describe the same with numbers (Box) instead of choices."
        )
    if flattened is None or flattened.width == 0:
        raise TypeError(
            f"{name}={space!r} is not supported: world models know Box (of numbers, any shape), "
            "Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these, none of them "
            "empty. Wrap the environment so that it has such a space."
        )
    return flattened


def _is_image(space: spaces.Box) -> bool:
    return space.dtype == np.uint8 and sum(side >= _IMAGE for side in space.shape) >= 2


def one_hot(choices: npt.NDArray[np.int64], width: int) -> Array:
    """Rows of zeros with a one at each choice, or at each of several choices.

    >>> one_hot(np.array([1, 0]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    rows = np.zeros((len(choices), width))
    np.put_along_axis(rows, choices if choices.ndim > 1 else choices[:, None], 1.0, axis=1)
    return rows


def numbers(name: str, values: Any) -> Array:
    """Anything that NumPy reads as real numbers, as doubles."""
    require_unmasked(name, values)
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
    name: str, array: npt.NDArray[Any], space: spaces.Space[Any], n_rows: int | None
) -> None:
    """Raise unless an array has one entry of a space in each row."""
    expected = space.shape or ()
    if array.ndim == 0 or array.shape[1:] != expected:
        hint = ""
        if array.shape == expected:
            hint = f" For a single one pass {name}[None]."
        elif array.shape[1:] == (*expected, 1):
            hint = f" Pass {name}[{':, ' * (array.ndim - 1)}0]."
        text = ", ".join(map(str, ("n", *expected))) + ("" if expected else ",")
        raise ValueError(
            f"{name} has shape {array.shape}, expected ({text}): one entry of {space} per row."
            f"{hint}"
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} rows, but obs has {n_rows}: pass one each.")
