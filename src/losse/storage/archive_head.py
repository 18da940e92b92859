"""The head of an archive: its kind, version, header, and the arrays that follow.

A head is strict JSON: no NaN, no key twice. Whatever it says is checked before anything is done
with it, in the same way when it is written and when it is read.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip
LARGEST = 4 << 20
"""Bytes of JSON. What is larger belongs in an array."""
MOST_AXES = 32
MOST_LEVELS = 50
"""Of lists and dictionaries within each other: what is deeper cannot even be shown."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", re.ASCII)


@dataclass(frozen=True)
class Head:
    """The head of an archive; ``shapes`` maps names to (dtype, shape), in the order of the file.

    >>> head = Head("example", 1, {"unit": "m"}, {"x": (np.dtype("float64"), (2, 3))})
    >>> head.encode()
    b'{"kind": "example", "version": 1, "header": {"unit": "m"}, "arrays": {"x": ["float64", [2, 3]]}}'
    >>> Head.decode(head.encode()) == head
    True
    """  # noqa: E501

    kind: str
    version: int
    header: Mapping[str, Any]
    shapes: Mapping[str, tuple[np.dtype, tuple[int, ...]]]

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str):
            raise ValueError(f"kind={self.kind!r} must be a string")
        if type(self.version) is not int or self.version < 1:
            raise ValueError(f"version={self.version!r} must be an integer of at least 1")
        for name, (dtype, shape) in self.shapes.items():
            _check_array(name, dtype.name, shape)

    def encode(self) -> bytes:
        """The head as JSON."""
        arrays = {name: [dtype.name, list(shape)] for name, (dtype, shape) in self.shapes.items()}
        head = {
            "kind": self.kind,
            "version": self.version,
            "header": dict(self.header),
            "arrays": arrays,
        }
        try:
            text = json.dumps(head, allow_nan=False).encode("ascii")
            _parse(text)  # whatever is written can be read
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"header cannot be kept as JSON: {error}. Use strings as keys; and dictionaries, "
                "lists, strings, finite numbers, booleans or None as values."
            ) from error
        if len(text) > LARGEST:
            raise ValueError(
                f"header takes {len(text):,} bytes of JSON, more than {LARGEST:,}: keep what is "
                "large as an array."
            )
        return text

    @classmethod
    def decode(cls, text: bytes) -> "Head":
        """Understand a head, or raise a `ValueError` that says why not."""
        try:
            head = _parse(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is not strict JSON ({error})") from error
        if not isinstance(head, dict) or head.keys() != {"kind", "version", "header", "arrays"}:
            raise ValueError("its entries are not kind, version, header and arrays")
        if not isinstance(head["header"], dict) or not isinstance(head["arrays"], dict):
            raise ValueError("its header or arrays are not an object")
        shapes = {}
        for name, entry in head["arrays"].items():
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
                raise ValueError(f"array {name!r} is not described by dtype and shape")
            _check_array(name, entry[0], entry[1])
            shapes[name] = (np.dtype(entry[0]), tuple(entry[1]))
        return cls(head["kind"], head["version"], head["header"], shapes)


def _check_array(name: Any, dtype: Any, shape: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"array name {name!r} must be words of A-Z, a-z, 0-9 and _, with dots")
    if dtype not in DTYPES:
        raise ValueError(f"array {name!r} has dtype {dtype!r} instead of one of {DTYPES}")
    if len(shape) > MOST_AXES:
        raise ValueError(f"array {name!r} has {len(shape)} axes, more than {MOST_AXES}")
    size = np.dtype(dtype).itemsize
    for side in shape:
        if type(side) is not int or side < 0:
            raise ValueError(f"array {name!r} has a side of {side!r}")
        size *= max(1, side)  # NumPy limits the other sides even if one is zero
    if size > np.iinfo(np.int64).max:
        raise ValueError(f"array {name!r} is larger than any memory")


def _parse(text: bytes) -> Any:
    value = json.loads(
        text.decode("ascii"),
        object_pairs_hook=_unique,
        parse_constant=_finite,
        parse_float=_finite,
    )
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [child for item in level for child in _children(item)]
    if level:
        raise ValueError(f"it has more than {MOST_LEVELS} levels")
    return value


def _children(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value
