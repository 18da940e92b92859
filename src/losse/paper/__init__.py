"""The paper's tables and figures, one package each, rebuilt from scratch on this library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from losse.runs.experiment import Experiment


class Entry(NamedTuple):
    """An experiment: the module within this package, and what it rebuilds."""

    module: str
    summary: str


EXPERIMENTS = {
    "denoising": Entry("denoising.experiment", "Table 1: encoders on image denoising"),
    "random-walk": Entry(
        "random_walk.experiment", "figures 4 and 9: learning a drifting stream without forgetting"
    ),
    "sparsity": Entry(
        "sparsity.experiment", "figure 7: the same sparse features, learned by gradient descent"
    ),
    "forgetting": Entry(
        "forgetting.experiment",
        "figure 1: where world models are wrong as an agent's visits narrow",
    ),
    "discrete-control": Entry(
        "control.discrete_control", "figure 5, top: world models in Dyna on three discrete tasks"
    ),
    "continuous-control": Entry(
        "control.continuous_control", "figure 5, bottom: world models in Dyna with SAC on MuJoCo"
    ),
    "replay-efficiency": Entry(
        "control.replay_efficiency", "figure 6: Losse against replay of several sizes"
    ),
    "planning": Entry("planning.alone", "planning in world models, beside SAC and Dyna"),
    "continual": Entry(
        "planning.continual", "planning for one task after the other: what is forgotten"
    ),
    "classic-control": Entry(
        "control.classic_control", "the presets of `losse train`, against agents without a model"
    ),
}
"""All experiments by their name on the command line and in results/."""


def load(name: str) -> Experiment:
    """Import an experiment by its name on the command line.

    >>> load("sparsity").METHODS
    ('losse', 'gradient-descent', 'adam')
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}; choose from: {', '.join(EXPERIMENTS)}")
    return cast("Experiment", import_module(f"{__name__}.{EXPERIMENTS[name].module}"))
