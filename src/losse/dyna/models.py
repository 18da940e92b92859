"""Which world model an agent gets: by the name of a method, or one that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from losse.world import WorldModel, make_world_model

MODEL_FREE = ("model-free", "model-free-matched")
"""No model; with as many gradient steps as without one usual, or as many as with planning."""
METHODS = ("losse", "full-replay", "online", "si", "coreset", *MODEL_FREE)


def check_model(world_model: Any, options: Mapping[str, Any] | None) -> None:
    """Raise unless there can be such a model."""
    if isinstance(world_model, str):
        if world_model not in METHODS:
            raise ValueError(
                f"world_model={world_model!r} is not known: use one of {', '.join(METHODS)}, or a "
                "WorldModel."
            )
    elif not isinstance(world_model, WorldModel):
        raise TypeError(f"world_model={world_model!r} is neither a WorldModel nor a name.")
    if options and (isinstance(world_model, WorldModel) or world_model in MODEL_FREE):
        raise ValueError(f"model_options={dict(options)} have no use with {world_model!r}.")


def model_for(
    agent: Any, world_model: WorldModel | str, options: Mapping[str, Any] | None = None
) -> WorldModel | None:
    """A model for the spaces of an agent, with the agent's seed; None without one."""
    check_model(world_model, options)
    if isinstance(world_model, WorldModel):
        return world_model
    if world_model in MODEL_FREE:
        return None
    chosen = {"seed": agent.seed or 0} | dict(options or {})
    return make_world_model(world_model, agent.observation_space, agent.action_space, **chosen)
