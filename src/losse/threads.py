"""One thread for linear algebra while matrices are small.

NumPy and SciPy each bring a library of linear algebra with a thread per core, and threads that wait
for work keep their cores busy. Small products are then slower by far with many threads than with
one: a core is often taken by a thread that only waits, of the other library or of another process.
"""

from __future__ import annotations

import threading
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

LARGE = 4096
"""Shorter side of products from which on more threads are worth their while."""

_lock = threading.RLock()  # a signal handler may compute, too
_before: list[tuple[Any, int]] = []
_depth = 0


class one_thread:  # noqa: N801  # used like a function
    """Compute with one thread in a block, unless the shorter side of its products is `LARGE`.

    The number of threads belongs to the process: other Python threads compute with one, too, until
    the last such block has ended.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> def threads():
    ...     return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    >>> before = threads()
    >>> with one_thread(300):
    ...     print(threads())
    {1}
    >>> threads() == before
    True
    """

    __slots__ = ("_limits",)

    def __init__(self, size: int = 0) -> None:
        self._limits = size < LARGE

    def __enter__(self) -> None:
        if self._limits:
            _enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._limits:
            _leave()


def _enter() -> None:
    global _depth
    with _lock:
        if _depth == 0:
            for library in _libraries():
                if (number := library.get_num_threads()) and number > 1:
                    _before.append((library, number))  # first, so that Ctrl-C loses no number
                    library.set_num_threads(1)
        _depth += 1


def _leave() -> None:
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            for library, number in _before:
                library.set_num_threads(number)
            _before.clear()


@cache
def _libraries() -> list[Any]:
    """The libraries of linear algebra that NumPy and SciPy have loaded."""
    import scipy.linalg  # noqa: F401  # so that it is there

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
