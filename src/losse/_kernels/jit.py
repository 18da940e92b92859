"""How every kernel is compiled: Numba, without the GIL, cached on disk where that is possible."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-associated so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: F) -> F:
    """Compile a kernel, with the on-disk cache if some cache folder is writable.

    >>> import numpy as np
    >>> @kernel
    ... def total(values):
    ...     s = 0.0
    ...     for v in values:
    ...         s += v
    ...     return s
    >>> total(np.ones(3))
    3.0
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # Numba found no writable folder for its cache
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
