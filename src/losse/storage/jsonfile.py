"""Strict JSON: values reduced to what it can hold, and files written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from losse.storage.atomic import replacing


def plain(value: Any) -> Any:
    """Reduce a value to what strict JSON can hold.

    NumPy values, paths and dataclasses are converted; NaN and infinity become None.

    >>> plain({"rates": (1e-3, np.float64(0.5)), "out": Path("results")})
    {'rates': [0.001, 0.5], 'out': 'results'}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write a value as strict JSON, atomically: a reader sees the old file or the whole new one.

    A mapping has one line per key: it can be read, and small changes make small differences.

    >>> import tempfile
    >>> path = write_json(Path(tempfile.mkdtemp()) / "x.json", {"a": np.float32(0.5)})
    >>> json.loads(path.read_text())
    {'a': 0.5}
    """
    path = Path(path)
    text = _text(plain(value))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as write:
        write(text.encode())
    return path


def _text(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, allow_nan=False) + "\n"
    items = (f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in value.items())
    return "{\n" + ",\n".join(items) + "\n}\n"
