"""Options of a run of a planning agent: one set of names, defaults and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gymnasium

from losse.checks import check_count
from losse.planning.registry import MODELS, PLANNERS, REGRESSORS, default_planner, make_planner

if TYPE_CHECKING:
    from losse.planning.agent import PlanningAgent

    PlannerName: TypeAlias = str
    ModelName: TypeAlias = str
    RegressorName: TypeAlias = str
else:  # the command line reads its choices from these
    PlannerName = Literal[("auto", *PLANNERS)]
    ModelName = Literal[MODELS]
    RegressorName = Literal[tuple(REGRESSORS)]

AGENT = "agent.losse"
"""File of the agent in the folder of its run."""


@dataclass(frozen=True, kw_only=True)
class PlanningOptions:
    """Everything that decides the result of a run, apart from the machine; all values are plain.

    Parameters
    ----------
    env
        Id of a Gymnasium environment, such as Pendulum-v1, CartPole-v1 or Reacher-v5.
    planner
        Planner: icem, cem or mppi for continuous actions, beam for discrete ones, random for both;
        auto is icem or beam.
    model
        World model: losse, a neural baseline, or oracle for the truth, where its rules are known.
    regressor
        Regressor of losse: planning (fast, and general after few steps), paper (its 30 grids) or
        recommended (accurate, but several times slower).
    steps
        Environment steps.
    seed
        Seed of environment, model and planner.
    horizon
        Steps that are imagined; by default that of the planner.
    samples
        Sequences of actions in each iteration, for beam its width; by default that of the planner.
    iterations
        Iterations of a decision with icem, cem or mppi; by default that of the planner.
    learning_starts
        Environment steps with random actions, before the first plan.
    update_every
        Environment steps between two updates of the model.
    discount
        What a reward is worth one step later.
    curiosity
        Reward for each unit of the model's uncertainty: above 0 explores, below 0 avoids.
    env_options
        Further arguments of the environment.

    Examples
    --------
    >>> PlanningOptions(env="Pendulum-v1", horizon=0)
    Traceback (most recent call last):
    ...
    ValueError: horizon=0 must be an integer of at least 1.
    """

    env: str
    planner: PlannerName = "auto"
    model: ModelName = "losse"
    regressor: RegressorName = "planning"
    steps: int = 1000
    seed: int = 0
    horizon: int | None = None
    samples: int | None = None
    iterations: int | None = None
    learning_starts: int = 200
    update_every: int = 25
    discount: float = 1.0
    curiosity: float = 0.0
    env_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("seed", self.seed, at_least=0)
        for name in ("horizon", "samples", "iterations"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def agent(self, env: gymnasium.Env[Any, Any]) -> PlanningAgent:
        """A new agent with these options."""
        from losse.planning.agent import PlanningAgent

        name = default_planner(env.action_space) if self.planner == "auto" else self.planner
        samples = "width" if name == "beam" else "n_samples"
        given = {"horizon": self.horizon, samples: self.samples, "n_iterations": self.iterations}
        options = {key: value for key, value in given.items() if value is not None}
        if self.iterations is not None and name in ("beam", "random"):
            raise ValueError(f"iterations={self.iterations} have no use with planner {name!r}.")
        model_options = None
        if self.model == "losse":
            model_options = {"regressor": REGRESSORS[self.regressor]()}
        return PlanningAgent(
            env,
            self.model,
            make_planner(name, self.seed, options),
            learning_starts=self.learning_starts,
            update_every=self.update_every,
            model_options=model_options,
            seed=self.seed,
            discount=self.discount,
            curiosity=self.curiosity,
        )
