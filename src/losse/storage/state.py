"""State of a model by name, and `StateReader`, which reads it back without trusting the file.

Every part of a model has two methods: ``state`` returns names with arrays, numbers or words;
``restore`` takes them from a `StateReader`, which checks each. Some arrays hold cell numbers that
compiled code follows blindly, so nothing is taken over unchecked.
"""

import math
import sys
from collections.abc import Iterable
from copy import copy
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from losse._kernels.simd import aligned
from losse.storage.archive import Archive, ArchiveError
from losse.storage.compact import Form, compact, expand

State = dict[str, Any]


COMPACT = "compact"
"""Entry of a header that says which arrays are in compact form, and what they were."""
_COMPLETE = 3
"""Version from which on files have all values."""
_LONGEST = 500
"""Characters of a message that may quote what the file contains."""


def split(state: State) -> tuple[State, dict[str, npt.NDArray[Any]]]:
    """Values for the header of an archive, and its arrays, matrices in compact form if that pays.

    >>> split({"total": 3.0, "A": np.zeros(2)})
    ({'total': 3.0}, {'A': array([0., 0.])})
    """
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in state.items() if name not in arrays}
    forms = {}
    for name, array in arrays.items():
        if (made := compact(array)) is not None:
            forms[name], arrays[name] = made
    return values | ({COMPACT: forms} if forms else {}), arrays


def shorten(text: str, longest: int) -> str:
    """The text, or its beginning.

    >>> shorten("abcdefgh", 4)
    'abcd...'
    """
    return text if len(text) <= longest else f"{text[:longest]}..."


def nested(name: str, state: State) -> State:
    """The same state as a part of another.

    >>> nested("memory", {"total": 3.0})
    {'memory.total': 3.0}
    """
    return {f"{name}.{key}": value for key, value in state.items()}


class StateReader:
    """Values from an archive, each checked for type, shape and range."""

    def __init__(self, archive: Archive, path: str) -> None:
        self._archive = archive
        self._path = path
        self._prefix = ""
        self._unread = set(archive.shapes)
        self._shapes = dict(archive.shapes)
        self._forms = self._compact_forms()
        self._shapes |= {name: (np.dtype(f.dtype), f.shape) for name, f in self._forms.items()}

    def part(self, name: str) -> "StateReader":
        """The values of a part, as `nested` has named them."""
        part = copy(self)
        part._prefix = f"{self._prefix}{name}."
        return part

    def require_all_read(self) -> None:
        """Refuse arrays that nobody has asked for."""
        if self._unread:
            self.refuse(f"array {min(self._unread)} belongs to nothing")

    def value(self, name: str) -> Any:
        """Anything that JSON can hold; the caller checks it."""
        try:
            return self._archive.header[self._prefix + name]
        except KeyError:
            self.refuse(f"{name} is missing")

    def has(self, name: str) -> bool:
        """Whether there is a value that older files may lack; in others it must be there."""
        return self._archive.version >= _COMPLETE or self._prefix + name in self._archive.header

    def word(self, name: str, choices: Iterable[str]) -> str:
        """One of some words."""
        value = self.value(name)
        if not isinstance(value, str) or value not in choices:
            self.refuse(f"{name}={value!r} is not known")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.value(name)
        if not isinstance(value, bool):
            self.refuse(f"{name}={value!r} is neither true nor false")
        return value

    def number(self, name: str, at_least: float = -math.inf, missing: float | None = None) -> float:
        """A finite number; ``missing``, if given, where an older file has none."""
        if missing is not None and self._prefix + name not in self._archive.header:
            return missing
        value = self.value(name)
        if type(value) not in (int, float) or not at_least <= value <= sys.float_info.max:
            self.refuse(f"{name}={value!r} is not a number of at least {at_least}")
        return float(value)

    def positive(self, name: str) -> float:
        """A finite number above zero."""
        return self.number(name, at_least=sys.float_info.min)

    def count(self, name: str, at_most: int = 2**62) -> int:
        """A whole number from 0."""
        value = self.value(name)
        if type(value) is not int or not 0 <= value <= at_most:
            self.refuse(f"{name}={value!r} is not a whole number from 0 to {at_most}")
        return value

    def counts(self, name: str, at_most: int) -> list[int]:
        """A list of whole numbers from 0."""
        values = self.value(name)
        if not isinstance(values, list) or len(values) > at_most:
            self.refuse(f"{name} is not a list of at most {at_most} numbers")
        for value in values:
            if type(value) is not int or not 0 <= value <= at_most:
                self.refuse(f"{name} contains {value!r}, not a whole number from 0 to {at_most}")
        return values

    def length(self, name: str) -> int:
        """Of an array with one axis."""
        _, shape = self._shapes.get(self._prefix + name, (None, ()))
        if len(shape) != 1:
            self.refuse(f"array {name} has shape {shape}, expected one axis")
        return int(shape[0])

    def has_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape is there."""
        return self._shapes.get(self._prefix + name, (None, None))[1] == shape

    def has_array(self, name: str) -> bool:
        """Whether an array is there."""
        return self._prefix + name in self._shapes

    def require_shape(
        self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64
    ) -> None:
        """Refuse a missing or misshapen array before anything is allocated for it."""
        found = self._shapes.get(self._prefix + name)
        if found != (np.dtype(dtype), shape):
            self.refuse(f"array {name} is {found}, expected {np.dtype(dtype)} of shape {shape}")

    def array(
        self,
        name: str,
        shape: tuple[int, ...] | None = None,
        dtype: npt.DTypeLike = np.float64,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """A finite array, read into ``out`` or into a new aligned one."""
        if out is None:
            assert shape is not None
            self.require_shape(name, shape, dtype)
            out = aligned(shape, dtype)
        else:
            self.require_shape(name, out.shape, out.dtype)
        self._read(self._prefix + name, out)
        self._unread.discard(self._prefix + name)
        if out.dtype.kind == "f" and not all(map(_is_finite, out if out.ndim > 1 else [out])):
            self.refuse(f"array {name} contains NaN or infinity")
        return out

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays by name."""
        return {
            name: self.array(name, shape, dtype) for name, (dtype, shape) in self._shapes.items()
        }

    def _compact_forms(self) -> dict[str, Form]:
        """Forms of the arrays that are in compact form."""
        entries = self._archive.header.get(COMPACT, {})
        if not isinstance(entries, dict):
            self.refuse(f"{COMPACT} is not an object")
        forms = {}
        for name, entry in entries.items():
            dtype, shape = self._archive.shapes.get(name, (None, ()))
            if dtype != np.uint8 or len(shape) != 1:
                self.refuse(f"array {name} is not in compact form")
            try:
                forms[name] = Form.read(entry)
            except ValueError as error:
                self.refuse(f"array {name} cannot be expanded, {error}")
        return forms

    def _read(self, name: str, out: npt.NDArray[Any]) -> None:
        if name not in self._forms:
            self._archive.read(name, out)
            return
        try:
            expand(self._forms[name], self._archive.read(name), out)
        except ValueError as error:
            if isinstance(error, ArchiveError):
                raise
            self.refuse(f"array {name} cannot be expanded, {error}")

    def columns(self, name: str, out: npt.NDArray[Any], width: int) -> None:
        """Read the first ``width`` columns of ``out``, whose others are padding.

        Files of version 0.1 have the padding, too.
        """
        _, shape = self._shapes.get(self._prefix + name, (None, ()))
        if shape == out.shape:
            self.array(name, out=out)
            if out[..., width:].any():
                self.refuse(f"array {name} has numbers in its padding")
        else:
            out[..., :width] = self.array(name, (*out.shape[:-1], width), out.dtype)

    def require_columns(self, name: str, rows: int, width: int) -> None:
        """Refuse an array without ``rows`` rows of at least ``width`` numbers, to be read later."""
        _, shape = self._shapes.get(self._prefix + name, (None, ()))
        if len(shape) != 2 or shape[0] != rows or shape[1] < width:
            self.refuse(f"array {name} has shape {shape}, expected ({rows}, {width})")

    def cells(self, name: str, shape: tuple[int, ...], below: int) -> npt.NDArray[np.int32]:
        """Cell numbers from 0 to ``below`` - 1."""
        values = self.array(name, shape, np.int32)
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < below:
            self.refuse(f"array {name} contains cells that do not exist")
        return values

    def refuse(self, problem: str) -> NoReturn:
        """Say that the file cannot be right."""
        text = shorten(f"{self._prefix}{problem}", _LONGEST)
        raise ArchiveError(
            f"{self._path} is not a valid model: {text}. "
            "Restore it from a backup, or save it again."
        )


def _is_finite(values: npt.NDArray[np.floating]) -> bool:
    # A finite sum of squares has finite terms; it may also have overflowed.
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())
