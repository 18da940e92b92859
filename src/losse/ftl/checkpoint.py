"""Files of `FTLRegressor`: one archive of parameters and state."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import numpy as np

from losse.storage.archive import Progress, open_archive, write_archive
from losse.storage.state import State, StateReader, split

KIND = "losse.FTLRegressor"
VERSION = 3
"""Version 1, of losse 0.1, has padding in its arrays; version 2 has none of them in compact form.
Both are read, too."""
_EVERY = 0.2
"""Seconds between lines of progress; work that takes less shows nothing."""


def write(path: str | os.PathLike[str], state: State, progress: bool | Progress) -> None:
    """Write the state of a model."""
    values, arrays = split({"losse": metadata.version("losse")} | state)
    write_archive(path, KIND, VERSION, values, arrays, report(progress, "Saving"))


@contextmanager
def opened(path: str | os.PathLike[str], progress: bool | Progress) -> Iterator[StateReader]:
    """A reader of the state that `write` has written, all of which is to be read."""
    with open_archive(path, KIND, VERSION, report(progress, "Loading")) as archive:
        saved = StateReader(archive, os.fsdecode(path))
        yield saved
        saved.require_all_read()


def report(progress: bool | Progress, label: str) -> Progress | None:
    """What tells of the bytes done: a line of progress, the given function, or nothing."""
    if isinstance(progress, bool):
        return byte_progress(label) if progress else None
    return progress


def byte_progress(label: str) -> Callable[[int, int], None]:
    """Make a function of (bytes done, bytes in all) that shows percent, gigabytes and rate.

    The line goes to the error stream if that is a terminal, and nowhere otherwise.

    >>> report = byte_progress("Saving")
    >>> report(500, 1000)
    """
    started = shown = time.monotonic()
    visible = False

    def report(done: int, total: int) -> None:
        nonlocal shown, visible
        now = time.monotonic()
        last = done >= total
        if not sys.stderr.isatty() or not (now - shown >= _EVERY or (last and visible)):
            return
        shown = now
        visible = not last
        percent = 100 * done / total if total else 100
        rate = done / max(1e-9, now - started) / 1e9
        line = f"{label}: {percent:3.0f} % of {total / 1e9:.2f} GB, {rate:.2f} GB/s"
        # Blanks cover what a longer line left behind.
        print(f"\r{line:<78}", end="\n" if last else "", file=sys.stderr, flush=True)

    return report


def names_of(estimator: Any) -> list[str] | None:
    """Names of the input columns of an estimator, if they have any."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def take_names(estimator: Any, saved: StateReader, key: str) -> None:
    """Give an estimator the names of its input columns that were saved."""
    names = saved.value(key)
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != estimator.n_features_in_
        or not all(isinstance(name, str) for name in names)
    ):
        saved.refuse(f"{key} is not a list of {estimator.n_features_in_} texts")
    estimator.feature_names_in_ = np.array(names, dtype=object)
