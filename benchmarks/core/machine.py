"""Limits of one core of this machine, measured, for judging kernels against.

Bandwidth over arrays far beyond the last-level cache: reading (a matrix times a vector) and the
triad a = b + s * c.  Matrix-multiply rate of the installed BLAS with as many threads as the
process has been given (the benchmark gives it one).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

STREAM_BYTES = 400_000_000  # per array
MATRIX = 1536


class Limits(NamedTuple):
    """Bytes per second and floating-point operations per second."""

    read: float
    triad: float
    dgemm: float
    sgemm: float


@numba.njit(fastmath=True)
def _triad(a, b, c, s):
    for i in range(a.size):
        a[i] = b[i] + s * c[i]


def best_seconds(task: Callable[[], object], repeats: int = 9) -> float:
    """The shortest of several timings: a limit is what is possible, not what is usual."""
    task()
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        task()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def measure() -> Limits:
    """Measure all four limits now (a few seconds)."""
    size = STREAM_BYTES // 8
    a, b, c = (np.full(size, value) for value in (0.0, 1.0, 2.0))
    tall = b.reshape(-1, 5_000)
    read = b.nbytes / best_seconds(lambda: np.matmul(tall, c[:5_000]))
    # A store first fetches its cache line, so the triad moves four arrays, not three.
    triad = 4 * a.nbytes / best_seconds(lambda: _triad(a, b, c, 3.0))
    return Limits(read, triad, _matmul_rate(np.float64), _matmul_rate(np.float32))


def _matmul_rate(dtype: type[np.floating]) -> float:
    left = np.random.default_rng(0).random((MATRIX, MATRIX)).astype(dtype)
    out = np.empty_like(left)
    return 2 * MATRIX**3 / best_seconds(lambda: np.matmul(left, left, out=out))
