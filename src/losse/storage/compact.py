"""Compact form of large matrices in files: no zeros, and no symmetric half twice.

A matrix is cut into groups of rows. Each group becomes a byte, `EMPTY`, `WHOLE` or `PART`; the
bits that say which of its entries are not zero, if it is `PART`; and those entries. Of a symmetric
matrix only the entries on and above the diagonal count. All bits of a number are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LEAST_BYTES = 1 << 16
"""Smaller matrices stay as they are."""
LEAST_SIDE = 32
"""So do those that are long and narrow."""
GROUP_BYTES = 4 << 20
"""Bytes of the rows that make a group, or a single row."""
WORTHWHILE = 0.75
"""Share of its size up to which a compact form is used."""
MOST_BYTES = 1 << 30
"""Bytes up to which it is used: it is made beside the matrix."""
MOST_AXES, MOST_ENTRIES = 3, 2**48
TYPES = ("float32", "float64")
EMPTY, WHOLE, PART = range(3)

Matrix = npt.NDArray[Any]


class Form(NamedTuple):
    """What a compact matrix was: its type and shape, and whether half of it is left out."""

    dtype: str
    shape: tuple[int, ...]
    symmetric: bool

    @classmethod
    def read(cls, entry: Any) -> Form:
        """Form that a file states; raises `ValueError` if there is none like it."""
        try:
            dtype, shape, symmetric = entry
            form = cls(dtype, tuple(shape), symmetric)
            sides = form.shape
            sound = (
                dtype in TYPES
                and all(type(side) is int and side > 0 for side in sides)
                and 2 <= len(sides) <= MOST_AXES
                and math.prod(sides) < MOST_ENTRIES
                and type(symmetric) is bool
                and (not symmetric or (len(sides) == 2 and sides[0] == sides[1]))
            )
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise ValueError(f"{entry!r} is no form of a matrix")
        return form


def compact(matrix: Matrix) -> tuple[Form, npt.NDArray[np.uint8]] | None:
    """Compact form of a matrix and its bytes, or None if it is better as it is.

    >>> matrix = np.eye(200)
    >>> form, data = compact(matrix)
    >>> form, len(data) < matrix.nbytes / 50
    (Form(dtype='float64', shape=(200, 200), symmetric=True), True)
    >>> out = np.zeros((200, 200))
    >>> expand(form, data, out)
    >>> np.array_equal(out, matrix)
    True
    """
    if (
        not 2 <= matrix.ndim <= MOST_AXES
        or matrix.dtype.name not in TYPES
        or matrix.nbytes < LEAST_BYTES
        or min(matrix.shape[-2:]) < LEAST_SIDE
    ):
        return None
    form = Form(matrix.dtype.name, matrix.shape, _is_symmetric(matrix))
    most = min(WORTHWHILE * matrix.nbytes, MOST_BYTES)
    parts, size = [], 0
    for group, mask in _groups(form):
        bits = _bits(matrix[group])
        bits = bits.ravel() if mask is None else bits[mask]
        filled = bits != 0
        count = np.count_nonzero(filled)
        kind = EMPTY if count == 0 else WHOLE if count == len(bits) else PART
        parts.append(np.array([kind], np.uint8))
        if kind == PART:
            parts.append(np.packbits(filled))
            bits = bits[filled]
        if kind != EMPTY:
            parts.append(bits.astype(bits.dtype.newbyteorder("<"), copy=False).view(np.uint8))
        size += sum(map(len, parts[-3:])) if kind == PART else len(parts[-1])
        if size > most:
            return None
    return form, np.concatenate(parts)


def expand(form: Form, data: npt.NDArray[np.uint8], out: Matrix) -> None:
    """Write a matrix into ``out``; raises `ValueError` if the bytes do not make one."""
    place = 0

    def take(count: int) -> npt.NDArray[np.uint8]:
        nonlocal place
        place += count
        if place > len(data):
            raise ValueError("it is cut off")
        return data[place - count : place]

    stored = _unsigned(np.dtype(form.dtype))
    for group, mask in _groups(form):
        rows = out[group]
        (kind,) = take(1)
        if kind == EMPTY:
            if rows.any():  # memory that is zero already need not be written
                rows[...] = 0
            continue
        length = rows.size if mask is None else int(np.count_nonzero(mask))
        bits = np.zeros(length, stored)
        if kind == WHOLE:
            bits[:] = take(length * stored.itemsize).view(stored.newbyteorder("<"))
        elif kind == PART:
            flags = np.unpackbits(take(-(-length // 8)))
            if flags[length:].any():
                raise ValueError("it marks entries that do not exist")
            filled = flags[:length].astype(bool)
            count = int(np.count_nonzero(filled)) * stored.itemsize
            bits[filled] = take(count).view(stored.newbyteorder("<"))
        else:
            raise ValueError(f"its rows are of kind {kind}")
        values = bits.view(form.dtype)
        if mask is None:
            rows[...] = values.reshape(rows.shape)
        else:
            rows[mask] = values
    if place != len(data):
        raise ValueError(f"it has {len(data)} bytes instead of {place}")
    if form.symmetric:
        _mirror(out)


def _groups(form: Form) -> Iterator[tuple[slice, npt.NDArray[np.bool_] | None]]:
    """Rows of each group, and which of their entries count; None for all."""
    n, *others = form.shape
    columns = math.prod(others)
    step = max(1, GROUP_BYTES // (columns * np.dtype(form.dtype).itemsize))
    for first in range(0, n, step):
        last = min(first + step, n)
        mask = None
        if form.symmetric:
            mask = np.arange(columns) >= np.arange(first, last)[:, None]
        yield slice(first, last), mask


def _tiles(n: int, size: int = 256) -> Iterator[tuple[slice, slice]]:
    """Tiles on and above the diagonal: a matrix and its transpose meet in cache."""
    for i in range(0, n, size):
        for j in range(i, n, size):
            yield slice(i, i + size), slice(j, j + size)


def _is_symmetric(matrix: Matrix) -> bool:
    n = len(matrix)
    return matrix.shape == (n, n) and all(
        np.array_equal(_bits(matrix[i, j]), _bits(matrix[j, i]).T) for i, j in _tiles(n)
    )


def _mirror(matrix: Matrix) -> None:
    """Copy what is above the diagonal below it; zeros on both sides are left alone."""
    for i, j in _tiles(len(matrix)):
        upper = matrix[i, j]
        if i == j:
            below = np.tri(len(upper), k=-1, dtype=bool)
            upper[below] = upper.T[below]
        elif upper.any() or matrix[j, i].any():
            matrix[j, i] = upper.T


def _bits(matrix: Matrix) -> Matrix:
    """The bits of floats as whole numbers: -0.0 is not 0, and NaN is equal to itself."""
    return np.ascontiguousarray(matrix).view(_unsigned(matrix.dtype))


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")
