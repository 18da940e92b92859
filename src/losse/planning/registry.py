"""Planners and world models by name, as the agent and the command line take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from losse import FTLRegressor, LosseEncoder
from losse.planning.continuous import CEM, ICEM, MPPI
from losse.planning.discrete import BeamSearch, RandomShooting
from losse.planning.planner import Planner
from losse.world import PerfectModel, WorldModel, make_world_model
from losse.world.registry import METHODS

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

PLANNERS: dict[str, type[Planner]] = {
    "icem": ICEM,
    "cem": CEM,
    "mppi": MPPI,
    "beam": BeamSearch,
    "random": RandomShooting,
}
ORACLE = "oracle"
"""The truth instead of a model."""
MODELS = (*METHODS, ORACLE)


def make_planner(
    planner: Planner | str, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Planner:
    """A planner by its name, with further arguments of its class; or the one given.

    >>> make_planner("beam", options={"width": 50})
    BeamSearch(horizon=15, seed=0, width=50)
    """
    if isinstance(planner, Planner):
        if options:
            raise ValueError(f"planner_options={dict(options)} have no use with {planner!r}.")
        return planner
    if planner not in PLANNERS:
        raise ValueError(
            f"planner={planner!r} is not known: use one of {', '.join(PLANNERS)}, or a Planner."
        )
    return PLANNERS[planner](**{"seed": seed} | dict(options or {}))


def default_planner(action_space: spaces.Space[Any]) -> str:
    """Name of the planner that suits most tasks with such actions.

    >>> default_planner(spaces.Discrete(2))
    'beam'
    """
    return "beam" if isinstance(action_space, spaces.Discrete) else "icem"


def planning_regressor() -> FTLRegressor:
    """The regressor of ``world_model="losse"`` where decisions are planned.

    One decision asks for tens of thousands of predictions. The recommended regressor of
    `LosseWorldModel` takes several times as long for each as this one, of the paper's kind.
    Its grids are coarser than the paper's and stand beside the inputs themselves: they generalise
    from the first few hundred steps, which is when an agent that plans begins to act.
    """
    return FTLRegressor(LosseEncoder(60, n_bins=4, grid_dim=2, linear=True), ridge=1e-3)


def paper_regressor() -> FTLRegressor:
    """The paper's regressor for discrete control, which is also fast enough for planning."""
    return FTLRegressor(LosseEncoder(30, n_bins=10, grid_dim=2), solver="sparse", ridge=1e-5)


REGRESSORS: dict[str, Callable[[], FTLRegressor | None]] = {
    "planning": planning_regressor,
    "paper": paper_regressor,
    "recommended": lambda: None,
}
"""Regressors of ``world_model="losse"`` by name; None is for that of `LosseWorldModel`."""


def model_for(
    env: VecEnv, world_model: WorldModel | str, seed: int, options: Mapping[str, Any] | None
) -> WorldModel:
    """The world model of a name for an environment; or the one given, if its spaces are right."""
    if isinstance(world_model, WorldModel):
        if options:
            raise ValueError(f"model_options={dict(options)} have no use with {world_model!r}.")
        for name in ("observation_space", "action_space"):
            mine, theirs = getattr(env, name), getattr(world_model, name)
            if mine != theirs:
                raise ValueError(
                    f"the world model's {name} is {theirs}, but the environment's is {mine}: make "
                    "the model with the spaces of the environment."
                )
        return world_model
    if world_model not in MODELS:
        raise ValueError(
            f"world_model={world_model!r} is not known: use one of {', '.join(MODELS)}, or a "
            "WorldModel."
        )
    chosen = dict(options or {})
    if world_model == ORACLE:
        return PerfectModel(first_environment(env), seed=seed, **chosen)
    if world_model == "losse":
        chosen.setdefault("regressor", planning_regressor())
    chosen.setdefault("seed", seed)
    return make_world_model(world_model, env.observation_space, env.action_space, **chosen)


def first_environment(env: VecEnv) -> Any:
    """The first of the environments in a `DummyVecEnv`."""
    several = getattr(env.unwrapped, "envs", None)
    if not several:
        raise ValueError(
            f"the environments of a {type(env.unwrapped).__name__} cannot be looked into: use a "
            "DummyVecEnv, or give a PerfectModel."
        )
    return several[0]
