"""Memory needed and free: what will not fit is refused, with advice, before it is allocated."""

import os
from pathlib import Path

GIGABYTE = 1e9


def available_memory() -> float:
    """Bytes that can still be allocated; infinity where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration, ValueError):
        try:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return float("inf")
    return float(min(free, _container_limit()))


def _container_limit() -> float:
    """What a control group leaves of its limit, if there is one."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        return limit - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # none, or "max"
        return float("inf")


def require_memory(needed: float, what: str, advice: str) -> None:
    """Raise `MemoryError` with figures and a remedy if ``needed`` bytes are not available.

    >>> require_memory(1e18, "A model of 10 features", "Lower n_grids.")
    Traceback (most recent call last):
    ...
    MemoryError: A model of 10 features needs 1000000000.0 GB, but only ... Lower n_grids.
    """
    free = available_memory()
    if needed > free:
        raise MemoryError(
            f"{what} needs {needed / GIGABYTE:.1f} GB, but only {free / GIGABYTE:.1f} GB of "
            f"memory are free. {advice}"
        )
