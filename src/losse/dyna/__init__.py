"""Dyna: agents of Stable-Baselines3 and SBX that also learn from an imagined world."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer
    from losse.dyna.callback import DynaCallback
    from losse.dyna.make import make_dyna
    from losse.dyna.run import load_run, save_run

__all__ = ["DynaCallback", "DynaReplayBuffer", "load_run", "make_dyna", "save_run"]

# Importing Stable-Baselines3 takes seconds.
__getattr__ = import_on_use(
    __name__,
    {
        "DynaCallback": "callback",
        "DynaReplayBuffer": "buffer",
        "load_run": "run",
        "make_dyna": "make",
        "save_run": "run",
    },
    extra="rl",
)
