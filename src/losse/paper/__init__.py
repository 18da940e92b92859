"""The paper's tables and figures, one module each, rebuilt from scratch on this library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from losse.paper.experiment import Experiment

EXPERIMENTS = {
    "denoising": "Table 1: encoders on image denoising",
    "random-walk": "figures 4 and 9: learning a drifting stream without forgetting",
    "sparsity": "figure 7: is it the sparse features or the update that does not forget?",
    "forgetting": "figure 1: where world models are wrong while an agent's visits narrow",
    "discrete-control": "figure 5, top: world models in Dyna on Gridworld, MountainCar, Acrobot",
    "replay-efficiency": "figure 6: Losse against replay of several sizes, by samples and time",
}
"""What each experiment rebuilds; `random-walk` is the module `losse.paper.random_walk`."""


def load(name: str) -> Experiment:
    """Import an experiment by its name on the command line.

    >>> load("sparsity").METHODS
    ('losse', 'gradient-descent', 'adam')
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}; choose from: {', '.join(EXPERIMENTS)}")
    return cast("Experiment", import_module(f"{__name__}.{name.replace('-', '_')}"))
