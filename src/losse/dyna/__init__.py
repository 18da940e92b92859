"""Dyna: agents of Stable-Baselines3 and SBX that also learn from an imagined world."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer
    from losse.dyna.callback import DynaCallback
    from losse.dyna.checkpoint import load_run, save_run
    from losse.dyna.make import make_dyna
    from losse.dyna.options import DynaOptions

_HOMES = {
    "DynaCallback": "callback",
    "DynaOptions": "options",
    "DynaReplayBuffer": "buffer",
    "load_run": "checkpoint",
    "make_dyna": "make",
    "save_run": "checkpoint",
}

__all__ = [
    "DynaCallback",
    "DynaOptions",
    "DynaReplayBuffer",
    "load_run",
    "make_dyna",
    "save_run",
]


def __getattr__(name: str) -> Any:
    """Import on first use: importing Stable-Baselines3 takes seconds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"losse.dyna.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "losse":
            raise
        raise ModuleNotFoundError(
            f"losse.dyna.{name} needs {error.name}: pip install 'losse[rl]'", name=error.name
        ) from error
    return getattr(home, name)
