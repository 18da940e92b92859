"""Planning: act by looking ahead in a world model, without a policy to train."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from losse.planning.agent import PlanningAgent
    from losse.planning.continuous import CEM, ICEM, MPPI
    from losse.planning.discrete import BeamSearch, RandomShooting
    from losse.planning.objective import Objective
    from losse.planning.planner import Plan, Planner

_HOMES = {
    "BeamSearch": "discrete",
    "CEM": "continuous",
    "ICEM": "continuous",
    "MPPI": "continuous",
    "Objective": "objective",
    "Plan": "planner",
    "Planner": "planner",
    "PlanningAgent": "agent",
    "RandomShooting": "discrete",
}

__all__ = [
    "CEM",
    "ICEM",
    "MPPI",
    "BeamSearch",
    "Objective",
    "Plan",
    "Planner",
    "PlanningAgent",
    "RandomShooting",
]


def __getattr__(name: str) -> Any:
    """Import on first use: only the agent needs Stable-Baselines3, which takes seconds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    extra = "rl" if name == "PlanningAgent" else "world"
    try:
        home = importlib.import_module(f"losse.planning.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "losse":
            raise
        raise ModuleNotFoundError(
            f"losse.planning.{name} needs {error.name}: pip install 'losse[{extra}]'",
            name=error.name,
        ) from error
    return getattr(home, name)
