"""World models: predictions of an environment, learned online without forgetting (section 2.2)."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from losse.world.evaluation import evaluate
    from losse.world.imagined import ImaginedEnv
    from losse.world.losse.model import LosseWorldModel
    from losse.world.model import WorldModel
    from losse.world.neural.model import NeuralWorldModel
    from losse.world.perfect import PerfectModel
    from losse.world.registry import make_world_model
    from losse.world.rollout import Rollout
    from losse.world.transitions import Transitions

_HOMES = {
    "ImaginedEnv": "imagined",
    "LosseWorldModel": "losse.model",
    "NeuralWorldModel": "neural.model",
    "PerfectModel": "perfect",
    "Rollout": "rollout",
    "Transitions": "transitions",
    "WorldModel": "model",
    "evaluate": "evaluation",
    "make_world_model": "registry",
}

__all__ = [
    "ImaginedEnv",
    "LosseWorldModel",
    "NeuralWorldModel",
    "PerfectModel",
    "Rollout",
    "Transitions",
    "WorldModel",
    "evaluate",
    "make_world_model",
]


def __getattr__(name: str) -> Any:
    """Import on first use: only neural models need JAX, and only some of the rest Gymnasium."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"losse.world.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "losse":
            raise
        raise ModuleNotFoundError(
            f"losse.world.{name} needs {error.name}: pip install 'losse[world]'", name=error.name
        ) from error
    return getattr(home, name)
