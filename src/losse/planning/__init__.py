"""Planning: act by looking ahead in a world model, without a policy to train."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

if TYPE_CHECKING:
    from losse.planning.agent import PlanningAgent
    from losse.planning.continuous import CEM, ICEM, MPPI
    from losse.planning.discrete import BeamSearch, RandomShooting
    from losse.planning.objective import Objective
    from losse.planning.planner import Plan, Planner

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

# Only the agent needs Stable-Baselines3, which takes seconds to import.
__getattr__ = import_on_use(
    __name__,
    {
        "BeamSearch": "discrete",
        "CEM": "continuous",
        "ICEM": "continuous",
        "MPPI": "continuous",
        "Objective": "objective",
        "Plan": "planner",
        "Planner": "planner",
        "PlanningAgent": "agent",
        "RandomShooting": "discrete",
    },
)
