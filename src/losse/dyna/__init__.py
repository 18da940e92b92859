"""Dyna: agents of Stable-Baselines3 and SBX that also learn from an imagined world."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer
    from losse.dyna.callback import DynaCallback
    from losse.dyna.checkpoint import load_run, save_run
    from losse.dyna.make import make_dyna
    from losse.dyna.options import DynaOptions
    from losse.dyna.presets import preset

__all__ = [
    "DynaCallback",
    "DynaOptions",
    "DynaReplayBuffer",
    "load_run",
    "make_dyna",
    "preset",
    "save_run",
]

# Importing Stable-Baselines3 takes seconds.
__getattr__ = import_on_use(
    __name__,
    {
        "DynaCallback": "callback",
        "DynaOptions": "options",
        "DynaReplayBuffer": "buffer",
        "load_run": "checkpoint",
        "make_dyna": "make",
        "preset": "presets",
        "save_run": "checkpoint",
    },
    extra="rl",
)
