"""World models: predictions of an environment, learned online without forgetting (section 2.2)."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

if TYPE_CHECKING:
    from losse.world.evaluation import evaluate
    from losse.world.imagined import ImaginedEnv
    from losse.world.jax.model import JaxWorldModel
    from losse.world.known import PartlyKnown
    from losse.world.losse.model import LosseWorldModel
    from losse.world.model import WorldModel
    from losse.world.neural.model import NeuralWorldModel
    from losse.world.perfect import PerfectModel
    from losse.world.registry import make_world_model
    from losse.world.rollout import Rollout
    from losse.world.transitions import Transitions

__all__ = [
    "ImaginedEnv",
    "JaxWorldModel",
    "LosseWorldModel",
    "NeuralWorldModel",
    "PartlyKnown",
    "PerfectModel",
    "Rollout",
    "Transitions",
    "WorldModel",
    "evaluate",
    "make_world_model",
]

# Only some models need JAX, and only some of the rest Gymnasium.
__getattr__ = import_on_use(
    __name__,
    {
        "ImaginedEnv": "imagined",
        "JaxWorldModel": "jax.model",
        "LosseWorldModel": "losse.model",
        "NeuralWorldModel": "neural.model",
        "PartlyKnown": "known",
        "PerfectModel": "perfect",
        "Rollout": "rollout",
        "Transitions": "transitions",
        "WorldModel": "model",
        "evaluate": "evaluation",
        "make_world_model": "registry",
    },
)
