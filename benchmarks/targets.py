"""Instruction sets that a benchmark measures: the widest of this machine, and AVX2.

Kernels are compiled for the processor that they run on. On one with AVX-512 a process can be told
to compile for AVX2 instead, by two variables of Numba, before it imports Numba. So processes that
measure are started once for each target.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from losse._kernels.block import INSTRUCTIONS

Target = Literal["widest", "avx2"]
TARGETS: tuple[Target, ...] = ("widest", "avx2")
ORDER = ("AVX-512", "AVX2", "NEON", "SSE")
"""Names of instruction sets as tables list them."""
VARIABLES: dict[Target, dict[str, str]] = {
    "widest": {},
    "avx2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""},
}
"""Environment variables that make Numba compile for a target."""


def available(targets: tuple[Target, ...] = TARGETS) -> tuple[Target, ...]:
    """Those of the targets that this machine has and that differ.

    >>> available(("widest",))
    ('widest',)
    """
    narrower = INSTRUCTIONS == "AVX-512"
    return tuple(target for target in targets if target == "widest" or narrower)


@contextmanager
def compiled_for(target: Target) -> Iterator[None]:
    """Let processes that start meanwhile compile their kernels for a target."""
    before = {name: os.environ.get(name) for name in VARIABLES[target]}
    os.environ.update(VARIABLES[target])
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
