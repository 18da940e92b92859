"""Compilation of kernels: Numba, without the GIL, cached on disk where that is possible."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba

# Sums may be re-associated so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_FOLDER = Path(__file__).parent
# Numba notices a change in a kernel's own file only, not in those that it calls. So the compiled
# kernels live in a folder named after all of their sources.
_SOURCES = b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("*.py")))
_CACHE = f"losse-{hashlib.sha256(_SOURCES).hexdigest()[:16]}"


def kernel(function: Callable[..., Any]) -> Any:
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
    return _compiled(numba.njit, function, nogil=True, fastmath=_FAST, error_model="numpy")


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that other programs call by its address, with the same cache."""
    return partial(_compiled, partial(numba.cfunc, signature))


def _compiled(compiler: Callable[..., Any], function: Callable[..., Any], **options: Any) -> Any:
    chosen = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(Path(chosen or _FOLDER / "__pycache__") / _CACHE)
    try:
        return compiler(cache=True, **options)(function)
    except RuntimeError:  # Numba found no writable folder for its cache
        return compiler(**options)(function)
    finally:
        numba.config.CACHE_DIR = chosen
