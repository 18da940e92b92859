"""How a neural world model goes to disk and comes back: one archive of its whole state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

from losse.ftl.checkpoint import report
from losse.storage.archive import Progress, open_archive, write_archive
from losse.storage.state import State, StateReader, nested, split
from losse.world.task import restore_task, task_state

if TYPE_CHECKING:
    from losse.world.neural import NeuralWorldModel

KIND = "losse.NeuralWorldModel"
VERSION = 1
NUMBERS = ("learning_rate", "xi", "c")
COUNTS = {"batch_size": 1 << 24, "coreset_size": 1 << 28, "seed": 2**31 - 1}
"""With the largest that a file may ask for."""
_WIDEST = 1 << 16

Model = TypeVar("Model", bound="NeuralWorldModel")


def save(model: NeuralWorldModel, path: str | os.PathLike[str], progress: bool | Progress) -> None:
    """Write a model."""
    state: State = {
        "losse": metadata.version("losse"),
        "memory": model.memory,
        "hidden": list(model.hidden),
        **{name: float(getattr(model, name)) for name in NUMBERS},
        **{name: int(getattr(model, name)) for name in COUNTS},
        "n_transitions": model.n_transitions,
        **task_state(model),
        **nested("units", model._units.state()),
        **nested("learner", model._learner.state()),
    }
    values, arrays = split(state)
    write_archive(path, KIND, VERSION, values, arrays, report(progress, "Saving"))


def load(
    kind: type[Model],
    path: str | os.PathLike[str],
    given: Mapping[str, Any],
    progress: bool | Progress,
) -> Model:
    """Read what `save` has written; ``given`` is for `restore_task`."""
    with open_archive(path, KIND, VERSION, report(progress, "Loading")) as archive:
        saved = StateReader(archive, os.fsdecode(path))
        parameters: dict[str, Any] = {
            **restore_task(saved, given),
            "memory": saved.value("memory"),
            "hidden": saved.counts("hidden", at_most=_WIDEST),
            **{name: saved.number(name) for name in NUMBERS},
            **{name: saved.count(name, at_most) for name, at_most in COUNTS.items()},
        }
        try:
            model = kind(**parameters)
        except (TypeError, ValueError) as error:
            saved.refuse(f"its parameters are wrong, {error}")
        model._units.restore(saved.part("units"))
        model._learner.restore(saved.part("learner"))
        model.n_transitions = saved.count("n_transitions")
        saved.require_all_read()
    return model
