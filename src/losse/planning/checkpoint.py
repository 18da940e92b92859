"""One file with a planning agent and its world model, without pickle.

The file is an archive of `losse.storage`. The model writes a file of its own, whose bytes are one
array of the archive: so every model that can be saved can be saved with its agent.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from losse import world
from losse.planning.objective import Objective
from losse.planning.registry import PLANNERS, first_environment, make_planner
from losse.storage.archive import ArchiveError, open_archive, write_archive
from losse.storage.state import State, StateReader, nested, split
from losse.world import PerfectModel, WorldModel

if TYPE_CHECKING:
    from losse.planning.agent import PlanningAgent

KIND = "losse.PlanningAgent"
VERSION = 2
FUNCTIONS = ("reward", "termination", "value")
"""Parts of an objective that may be functions, which a file cannot hold."""
NUMBERS = ("discount", "curiosity", "std_scale", "max_std")
WORK = ("horizon", "n_samples", "width", "n_iterations")
MOST_WORK = 10**7
"""Imagined steps of a decision, the product of these options, up to which a file is believed."""
_MODELS = ("LosseWorldModel", "NeuralWorldModel", "PerfectModel")

Agent = TypeVar("Agent", bound="PlanningAgent")


def save(
    agent: PlanningAgent, path: str | os.PathLike[str], notes: Mapping[str, Any] | None
) -> None:
    """Write an agent; see `PlanningAgent.save`."""
    model: Any = agent.world_model
    if type(model).__name__ not in _MODELS:
        raise TypeError(f"{model!r} cannot be saved: only {', '.join(_MODELS)} can.")
    if type(agent.planner) not in PLANNERS.values():
        raise TypeError(f"{agent.planner!r} cannot be saved: only planners of losse can.")
    target = Path(path)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        file = Path(folder, "world_model")
        if isinstance(model, PerfectModel):
            model.save(file)
        else:
            model.save(file, progress=False)
        values, arrays = split(_settings(agent) | nested("agent", agent.state()))
        values |= {"model": type(model).__name__, "notes": dict(notes or {})}
        arrays["world_model"] = np.memmap(file, np.uint8, mode="r")
        write_archive(target, KIND, VERSION, values, arrays)
        del arrays  # Windows removes no file that is in use


def load(
    kind: type[Agent],
    path: str | os.PathLike[str],
    env: Any,
    world_model: WorldModel | None,
    changes: Mapping[str, Any],
) -> Agent:
    """Read an agent; see `PlanningAgent.load`."""
    target = Path(path)
    with (
        open_archive(path, KIND, VERSION) as archive,
        TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder,
    ):
        saved = StateReader(archive, os.fsdecode(path))
        arguments = _arguments(saved, changes) | dict(changes)
        stored = _stored_model(saved, Path(folder, "world_model"))
        method = saved.word("model", _MODELS)
        if world_model is not None:
            agent = kind(env, world_model, **arguments)
        elif method == "PerfectModel":  # needs the environment as the agent has it
            agent = kind(env, "oracle", **arguments)
            agent.world_model = PerfectModel.load(stored, first_environment(agent.envs))
        else:
            try:
                learned = getattr(world, method).load(stored, progress=False)
            except ArchiveError as error:
                saved.refuse(f"its world model cannot be read ({error})")
            agent = kind(env, learned, **arguments)
        agent.restore(saved.part("agent"))
        saved.require_all_read()
    return agent


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The notes that `PlanningAgent.save` was given."""
    with open_archive(path, KIND, VERSION) as archive:
        return dict(archive.header["notes"])


def _settings(agent: PlanningAgent) -> State:
    """What an agent was made with, but for functions."""
    objective = agent.objective
    names = {kind: name for name, kind in PLANNERS.items()}
    return {
        "losse": metadata.version("losse"),
        "planner": names[type(agent.planner)],
        "planner_options": agent.planner.settings(),
        "learning_starts": agent.learning_starts,
        "update_every": agent.update_every,
        "seed": agent.seed,
        "never_ends": objective.termination == "never",
        "functions": [name for name in FUNCTIONS if callable(getattr(objective, name))],
        "objective": {name: _plain(getattr(objective, name)) for name in NUMBERS},
    }


def _arguments(saved: StateReader, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the constructor, checked as it would."""
    functions, objective = saved.value("functions"), saved.value("objective")
    planner, options = saved.word("planner", PLANNERS), saved.value("planner_options")
    seed = saved.value("seed")
    termination = "never" if saved.flag("never_ends") else None
    try:
        made = make_planner(planner, 0, options).settings()
        work = math.prod(made[name] for name in WORK if name in made)
        Objective(termination=termination, **objective)
        known = set(functions) <= set(FUNCTIONS) and set(objective) == set(NUMBERS)
        sound = (
            known
            and work < MOST_WORK
            and (seed is None or (type(seed) is int and 0 <= seed < 2**32))
        )
    except (TypeError, ValueError, OverflowError) as error:
        saved.refuse(f"planner, objective or seed make no sense: {error}")
    if not sound:
        saved.refuse("planner, objective or seed make no sense")
    for name in FUNCTIONS:
        if name in functions and name not in changes:
            raise ValueError(
                f"{name} is missing: the agent was saved with a function, which a file cannot "
                f"hold. Pass {name}=that function, or {name}=None to do without."
            )
    return {
        "planner": planner,
        "planner_options": options,
        "learning_starts": saved.count("learning_starts"),
        "update_every": max(1, saved.count("update_every")),
        "seed": seed,
        "termination": termination,
        **objective,
    }


def _plain(value: Any) -> Any:
    return value if value is None else np.asarray(value).tolist()


def _stored_model(saved: StateReader, path: Path) -> Path:
    """The model's own file, taken out of the archive."""
    size = saved.length("world_model")
    out = np.memmap(path, np.uint8, mode="w+", shape=(size,))
    saved.array("world_model", out=out)
    out.flush()
    return path
