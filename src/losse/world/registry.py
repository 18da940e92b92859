"""Registry of world models: by the names of their methods in tables, records and commands."""

from typing import Any

from gymnasium import spaces

from losse.world.model import WorldModel
from losse.world.neural.memories import MEMORIES

METHODS = ("losse", *MEMORIES)


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
        ``"online"``, ``"si"``, ``"coreset"``.
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

        return LosseWorldModel(observation_space, action_space, seed=seed, **options)
    if method in MEMORIES:
        from losse.world import NeuralWorldModel  # its error names the extra to install

        return NeuralWorldModel(
            observation_space, action_space, memory=method, seed=seed, **options
        )
    raise ValueError(f"method={method!r} is not known: use one of {', '.join(METHODS)}.")
