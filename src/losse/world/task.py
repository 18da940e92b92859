"""What every saved world model says about its task: spaces, reward and termination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.storage.state import State, StateReader, nested

if TYPE_CHECKING:
    from losse.world.model import WorldModel

_MOST = 1 << 24
_DTYPES = [f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)][1:]


def task_state(model: WorldModel) -> State:
    """The arguments of `WorldModel`, for a checkpoint."""
    return {
        "termination": "function" if callable(model.termination) else model.termination,
        "reward": "function" if callable(model.reward) else model.reward,
        **nested("observation_space", _space_state(model.observation_space)),
        **nested("action_space", _space_state(model.action_space)),
    }


def restore_task(saved: StateReader, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same arguments again.

    ``given`` are those of `load`, by name: spaces, which must be the model's unless None; and
    termination and reward, the functions that a file cannot hold, else None.
    """
    task: dict[str, Any] = {}
    for name in ("observation_space", "action_space"):
        space = task[name] = _space(saved.part(name))
        if given[name] is not None and given[name] != space:
            raise ValueError(
                f"{name}={given[name]} is not that of the saved model, {space}: load it for the "
                "environment that it was made for."
            )
    for name in ("termination", "reward"):
        task[name] = _rule(saved, name, given[name])
    return task


def _rule(saved: StateReader, name: str, function: Any) -> Any:
    """A word as it was saved, or the function that replaces the one that could not be."""
    words = ("learned", "never", "function") if name == "termination" else ("learned", "function")
    word = saved.word(name, words)
    if word == "function" and not callable(function):
        raise ValueError(
            f"{name}={function!r}: the model was saved with a function of its own, which a file "
            f"cannot hold; pass {name}=that function."
        )
    if word != "function" and function is not None:
        raise ValueError(f"{name}={function!r} was given, but the model has {name}={word!r}.")
    return function if word == "function" else word


def _space_state(space: spaces.Space[Any]) -> State:
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.Box)
    bounds: State = {}
    for name, values in (("low", space.low), ("high", space.high)):
        finite = np.isfinite(values)
        bounds |= {name: np.where(finite, values, 0).astype(space.dtype), f"{name}_known": finite}
    return {"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **bounds}


def _space(saved: StateReader) -> spaces.Space[Any]:
    if saved.word("type", ("Box", "Discrete")) == "Discrete":
        n, start = saved.count("n", at_most=_MOST), saved.value("start")
        if n == 0 or type(start) is not int:
            saved.refuse(f"n={n}, start={start!r} make no Discrete space")
        return spaces.Discrete(n, start=start)
    dtype = np.dtype(saved.word("dtype", _DTYPES))
    shape = tuple(saved.counts("shape", at_most=_MOST))
    low = _bound(saved, "low", shape, dtype, -np.inf)
    high = _bound(saved, "high", shape, dtype, np.inf)
    if (low > high).any():
        saved.refuse("low is above high")
    return spaces.Box(low, high, dtype=dtype.type)


def _bound(
    saved: StateReader, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], far: float
) -> npt.NDArray[Any]:
    values = saved.array(name, shape, dtype)
    known = saved.array(f"{name}_known", shape, np.bool_)
    if dtype.kind == "f":
        values[~known] = far
    elif not known.all():
        saved.refuse(f"{name} of {dtype} is not known")
    return values
