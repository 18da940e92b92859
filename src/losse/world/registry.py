"""Registry of world models: by the names of their methods in tables, records and commands."""

import inspect
from typing import Any

from gymnasium import spaces

from losse.world.model import WorldModel
from losse.world.neural.memories import MEMORIES

METHODS = ("losse", *MEMORIES)
"""Methods that tables compare."""
FUNCTIONAL = "jax"
"""The method "losse" in its functional form, which imagines on JAX's device."""
MODELS = (*METHODS, FUNCTIONAL)
"""All names of world models."""


def make_world_model(
    method: str,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    *,
    seed: int = 0,
    **options: Any,
) -> WorldModel:
    """The world model of a method; further options go to its class.

    Parameters
    ----------
    method
        ``"losse"``, or a `NeuralWorldModel` with one of the memories ``"full-replay"``,
        ``"online"``, ``"si"``, ``"coreset"``, or ``"jax"``, which is a `JaxWorldModel`.
    observation_space, action_space, seed, options
        As in the class.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> make_world_model("losse", Box(0, 1, (2,)), Discrete(4), termination="never").n_transitions
    0
    """
    if method == "losse":
        from losse.world.losse.model import LosseWorldModel

        kind: Any = LosseWorldModel
    elif method == FUNCTIONAL:
        from losse.world import JaxWorldModel  # its error names the extra to install

        kind = JaxWorldModel
    elif method in MEMORIES:
        from losse.world import NeuralWorldModel

        kind, options = NeuralWorldModel, {"memory": method} | options
    else:
        raise ValueError(f"method={method!r} is not known: use one of {', '.join(MODELS)}.")
    known = list(inspect.signature(kind).parameters)[2:]
    for name, value in options.items():
        if name not in known:
            raise TypeError(
                f"{name}={value!r} is not an option of {kind.__name__}: use one of "
                f"{', '.join(known)}."
            )
    model: WorldModel = kind(observation_space, action_space, seed=seed, **options)
    return model
