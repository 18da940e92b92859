"""Checkpoints of world models: one archive of the task, the settings and all that was learned."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from importlib import metadata
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.ftl.checkpoint import report
from losse.storage.archive import ArchiveError, Progress, open_archive, write_archive
from losse.storage.state import State, StateReader, nested, split
from losse.world.known import Function, PartlyKnown, kind_of
from losse.world.model import WorldModel
from losse.world.spaces import flat

SPACES = ("observation_space", "action_space")
_RULES = {
    "termination": ("learned", "never", "function"),
    "reward": ("learned", "function", "part"),
}
_MOST = 1 << 62
_DTYPES = [f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)][1:]


class CheckpointedModel(WorldModel):
    """A world model that can be saved to a file, and goes on from there."""

    kind: ClassVar[str]
    """Name of the class in its archives."""
    version: ClassVar[int] = 3
    """Newest version of the archive; older ones are read, too."""

    def save(self, path: str | os.PathLike[str], progress: bool | Progress = True) -> None:
        """Write the model to one file, atomically and without pickle; see `FTLRegressor.save`.

        All that decides how the model goes on is in it. Functions given as ``termination`` and
        ``reward`` are not.
        """
        with self.lock:
            values, arrays = split({"losse": metadata.version("losse")} | self.state())
            write_archive(path, self.kind, self.version, values, arrays, report(progress, "Saving"))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
        termination: Function | None = None,
        reward: Function | PartlyKnown | None = None,
        progress: bool | Progress = True,
    ) -> Self:
        """Read a model that `save` has written; it goes on bit for bit as the saved one would.

        Parameters
        ----------
        path
            Of the file.
        observation_space, action_space
            If given, those that the model must have been made for.
        termination, reward
            The functions, if the model had such, in a `PartlyKnown` if it had one.
        progress
            As in `FTLRegressor.load`.
        """
        known = dict(zip(SPACES, (observation_space, action_space), strict=True))
        functions = {"termination": termination, "reward": reward}
        with open_archive(path, cls.kind, cls.version, report(progress, "Loading")) as archive:
            saved = StateReader(archive, os.fsdecode(path))
            task: dict[str, Any] = {
                name: _space_of_task(saved, name, space, archive.version)
                for name, space in known.items()
            }
            task |= {name: _rule(saved, name, function) for name, function in functions.items()}
            settings = cls._settings(saved, task)
            try:
                model = cls(**task, **settings)
            except (TypeError, ValueError) as error:
                saved.refuse(f"its settings are wrong, {error}")
            model.restore(saved, archive.version)
            saved.require_all_read()
        return model

    def state(self) -> State:
        """All that a checkpoint keeps, by name."""
        return {
            "n_transitions": self.n_transitions,
            "termination": kind_of(self.termination),
            "reward": kind_of(self.reward),
            **nested("observation_space", _space_state(self.observation_space)),
            **nested("action_space", _space_state(self.action_space)),
            **self._state(),
        }

    @abstractmethod
    def _state(self) -> State:
        """Settings of the class, and what was learned."""

    @classmethod
    @abstractmethod
    def _settings(cls, saved: StateReader, task: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the class other than the task, from what `_state` returned.

        Whatever makes a model large must agree with arrays of the file, so that a small file that
        asks for a large model is refused before anything is allocated or compiled.
        """

    def restore(self, saved: StateReader, version: int) -> None:
        """Take over what was learned from what `state` returned, as that version of it did."""
        self.n_transitions = saved.count("n_transitions")


def _space_of_task(
    saved: StateReader, name: str, known: spaces.Space[Any] | None, version: int
) -> spaces.Space[Any]:
    """A space as it was saved; raises if it is not the known one."""
    try:
        space = _space(saved.part(name), version)
        flat(name, space)
    except ArchiveError:
        raise
    except (TypeError, ValueError, AssertionError, OverflowError, RecursionError) as error:
        saved.refuse(f"{name} is no space, {error}")
    if known is not None and known != space:
        raise ValueError(
            f"{name}={known} is not that of the saved model, {space}: load it for the "
            "environment that it was made for."
        )
    return space


def _rule(saved: StateReader, name: str, given: Any) -> Any:
    """A word as it was saved, or what replaces the function that could not be."""
    word = saved.word(name, _RULES[name])
    if word == "function" and not callable(given):
        raise ValueError(
            f"{name}={given!r}: the model was saved with a function of its own, which a file "
            f"cannot hold; pass {name}=that function."
        )
    if word == "part" and not isinstance(given, PartlyKnown):
        raise ValueError(
            f"{name}={given!r}: the model was saved with a PartlyKnown, whose function a file "
            f"cannot hold; pass {name}=PartlyKnown(that function)."
        )
    if given is None or kind_of(given) == word:
        return word if given is None else given
    raise ValueError(f"{name}={given!r} was given, but the model has {name}={word!r}.")


def _space_state(space: spaces.Space[Any]) -> State:
    """Values from which `_space` makes a space again."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        named = space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        kind = "Dict" if isinstance(space, spaces.Dict) else "Tuple"
        state: State = {"type": kind, "keys": list(named)}
        for i, part in enumerate(named.values()):
            state |= nested(f"part{i}", _space_state(part))
        return state
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.n)}
    if isinstance(space, spaces.Discrete):
        one = {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
        return one | {"dtype": str(space.dtype)}
    state = {"dtype": str(space.dtype), "shape": list(space.shape or ())}
    if isinstance(space, spaces.MultiDiscrete):
        return state | {"type": "MultiDiscrete", "nvec": space.nvec, "start": space.start}
    assert isinstance(space, spaces.Box)
    for name, values in (("low", space.low), ("high", space.high)):
        finite = np.isfinite(values)
        state |= {name: np.where(finite, values, 0).astype(space.dtype), f"{name}_known": finite}
    return state | {"type": "Box"}


def _space(saved: StateReader, version: int) -> spaces.Space[Any]:
    """The space that `_space_state` has described."""
    kind = saved.word("type", ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple"))
    if kind in ("Dict", "Tuple"):
        keys = saved.value("keys")
        if not isinstance(keys, list) or not all(type(key) in (int, str) for key in keys):
            saved.refuse(f"keys={keys!r} are not the names of parts")
        parts = [_space(saved.part(f"part{i}"), version) for i in range(len(keys))]
        if kind == "Tuple":
            return spaces.Tuple(parts)
        return spaces.Dict(list(zip(keys, parts, strict=True)))
    if kind == "MultiBinary":
        n = saved.value("n")
        return spaces.MultiBinary(saved.counts("n", _MOST) if isinstance(n, list) else n)
    # Version 1 did not say which integers a Discrete space has.
    dtype = np.dtype(
        "int64" if kind == "Discrete" and version < 2 else saved.word("dtype", _DTYPES)
    )
    if kind == "Discrete":
        n, start = saved.count("n", at_most=_MOST), saved.value("start")
        if type(start) is not int or abs(start) > _MOST:
            saved.refuse(f"start={start!r} is not a whole number of size up to {_MOST}")
        other: dict[str, Any] = {} if dtype == np.int64 else {"dtype": dtype.type}
        return spaces.Discrete(n, start=start, **other)
    shape = tuple(saved.counts("shape", at_most=_MOST))
    if kind == "MultiDiscrete":
        nvec, first = saved.array("nvec", shape, dtype), saved.array("start", shape, dtype)
        return spaces.MultiDiscrete(nvec, dtype=dtype.type, start=first)
    low = _bound(saved, "low", shape, dtype, -np.inf)
    high = _bound(saved, "high", shape, dtype, np.inf)
    if (low > high).any():
        saved.refuse("low is above high")
    return spaces.Box(low, high, dtype=dtype.type)


def _bound(
    saved: StateReader, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], far: float
) -> npt.NDArray[Any]:
    """The bounds of a Box, infinite where they are not known."""
    values = saved.array(name, shape, dtype)
    known = saved.array(f"{name}_known", shape, np.bool_)
    if dtype.kind == "f":
        values[~known] = far
    elif not known.all():
        saved.refuse(f"{name} of {dtype} is not known")
    return values
