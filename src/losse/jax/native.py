"""Native updates: on a CPU, XLA calls the library's own kernels, which work in place.

They are used for models with a square memory, outside of `jax.shard_map`, and only if XLA passes
arrays as the kernels expect: this is read from the header that comes with JAX, before anything is
called. Otherwise XLA's own operations do the same, more slowly.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from losse._kernels.xla import LAYOUT, square_learner
from losse.jax.model import Memory, Rows

MAJOR = 0
"""Version of XLA's foreign function interface whose frames are known."""


def learn(memory: Memory, W: jax.Array, ridge: jax.Array, rows: Rows) -> tuple[Memory, jax.Array]:
    """Algorithm 2 over rows, one after the other, on a CPU: the new memory and weights."""
    parts = (memory.A, memory.B, W, memory.squares, memory.total)
    name = target(np.dtype(W.dtype).name)
    assert name is not None
    call = jax.ffi.ffi_call(
        name,
        [jax.ShapeDtypeStruct(part.shape, part.dtype) for part in parts],  # type: ignore[no-untyped-call]
        input_output_aliases={k: k for k in range(len(parts))},
        vmap_method="broadcast_all",
    )
    A, B, W, squares, total = call(*parts, ridge, *rows)
    counted = (rows[3] > 0).sum(dtype=memory.n_samples.dtype)
    return Memory(A, B, squares, total, memory.n_samples + counted), W


@cache
def target(dtype: str) -> str | None:
    """Name by which XLA knows the function for one precision; None if it cannot call it."""
    if not layout_is_known():
        return None
    name = f"losse_learn_square_{dtype}"
    capsule: Any = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    try:
        address = _compiled(dtype).address
        jax.ffi.register_ffi_target(name, capsule(address, None, None), platform="cpu")
    except (AttributeError, RuntimeError, ValueError):  # it refuses the version, say
        return None
    return name


@cache
def layout_is_known() -> bool:
    """Whether the installed JAX passes arrays as the kernels expect, by its own header."""
    try:
        path = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
        text = path.read_text(encoding="utf-8")
    except (AttributeError, OSError):
        return False
    return fits(text)


def fits(header: str) -> bool:
    """Whether a header declares the structures that the kernels read.

    >>> fits("#define XLA_FFI_API_MAJOR 1")
    False
    """
    code = re.sub(r"//[^\n]*", "", header)
    major = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", code)
    if major is None or int(major[1]) != MAJOR:
        return False
    return all(_fields(code, name)[: len(want.split())] == want.split()
               for name, want in LAYOUT.items())  # fmt: skip


def _fields(code: str, name: str) -> list[str]:
    """Names of the fields of a structure."""
    found = re.search(rf"struct {name} \{{(.*?)\}};", code, flags=re.DOTALL)
    return re.findall(r"(\w+)\s*;", found[1]) if found else []


@cache  # XLA may call it until the process ends
def _compiled(dtype: str) -> Any:
    return square_learner(dtype)
