"""Files of `FTLRegressor`: one archive of parameters and state."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import numpy as np

from losse.storage.archive import Progress, open_archive, write_archive
from losse.storage.progress import byte_progress
from losse.storage.state import State, StateReader, split

KIND = "losse.FTLRegressor"
VERSION = 3
"""Version 1, of losse 0.1, has padding in its arrays; version 2 has none of them in compact form.
Both are read, too."""


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
