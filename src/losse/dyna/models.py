"""World models of agents: by the name of a method, or one that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

from losse.world import PerfectModel, WorldModel, make_world_model, registry

MODEL_FREE = ("model-free", "model-free-matched")
"""No model; with as many gradient steps as without one usual, or as many as with planning."""
ORACLE = "oracle"
"""The truth instead of a model."""
METHODS = (*registry.METHODS, *MODEL_FREE, ORACLE)
"""Methods that tables compare."""
MODELS = (*registry.MODELS, *MODEL_FREE, ORACLE)
"""All names that an agent can be given for a model."""


def check_model(world_model: Any, options: Mapping[str, Any] | None) -> None:
    """Raise unless there can be such a model."""
    if isinstance(world_model, str):
        if world_model not in MODELS:
            raise ValueError(
                f"world_model={world_model!r} is not known: use one of {', '.join(MODELS)}, or a "
                "WorldModel."
            )
    elif not isinstance(world_model, WorldModel):
        raise TypeError(f"world_model={world_model!r} is neither a WorldModel nor a name.")
    if options and world_model not in registry.MODELS:
        raise ValueError(f"model_options={dict(options)} have no use with {world_model!r}.")


def model_for(
    agent: Any, world_model: WorldModel | str, options: Mapping[str, Any] | None = None
) -> WorldModel | None:
    """Model for the spaces of an agent, with the agent's seed; None without one."""
    check_model(world_model, options)
    if isinstance(world_model, WorldModel):
        return world_model
    if world_model in MODEL_FREE:
        return None
    if world_model == ORACLE:
        return PerfectModel(environment_of(agent), seed=agent.seed or 0)
    chosen = {"seed": agent.seed or 0} | dict(options or {})
    buffer = agent.replay_buffer  # has the spaces that its rows are in
    return make_world_model(world_model, buffer.observation_space, buffer.action_space, **chosen)


def environment_of(agent: Any) -> gymnasium.Env[Any, Any]:
    """The first of the environments that an agent learns in."""
    several = agent.env.unwrapped
    if not getattr(several, "envs", None):
        raise ValueError(
            f"the environments of a {type(several).__name__} cannot be looked into: use a "
            f"DummyVecEnv, or a PerfectModel instead of {ORACLE!r}."
        )
    return several.envs[0]
