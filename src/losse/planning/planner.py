"""Planner: the one interface of all planners, and the plan that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count
from losse.planning.objective import Futures, Objective
from losse.typing import Array
from losse.world import WorldModel

Rows = npt.NDArray[Any]
Score = Callable[[Rows], Array]
"""Of sequences of actions, (n, horizon, ...), to what each gains."""


@dataclass(frozen=True)
class Plan:
    """A sequence of actions, and what the model expects of it.

    Attributes
    ----------
    actions
        (horizon, ...), in the units of the action space. The first is to be taken now.
    observations
        (horizon + 1, ...): the present one, and where each action is expected to lead.
    value
        What the plan is expected to gain.
    candidates
        (n, horizon, ...): sequences from which the next decision starts, as the planner has them.
    age
        Decisions before this one that it goes back to.
    """

    actions: Rows
    observations: Rows
    value: float
    candidates: Rows
    age: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """One decision that is to be made: where, in which model, and for what.

    Attributes
    ----------
    start
        Candidates of the last decision, shifted by the action that was taken; None at the first.
    rng
        Where random numbers come from.
    """

    model: WorldModel
    obs: npt.ArrayLike
    objective: Objective
    start: Rows | None
    rng: np.random.Generator

    def futures(self) -> Futures:
        """The present, from which one future may be followed or many."""
        here = np.asarray(self.obs, dtype=self.model.observation_space.dtype)
        return Futures(self.model, self.objective, here[None])

    def returns(self, sequences: Rows) -> Array:
        """What sequences of actions, (n, horizon, ...), gain."""
        return self.objective.returns(self.model, self.obs, sequences)


@dataclass(eq=False)
class Planner(ABC):
    """Finds actions that gain most in what a world model imagines.

    ``action, plan = planner(model, obs, objective)``. A planner has no memory of its own: give the
    plan of the last decision as ``previous``, and the search starts from there, one step on. The
    same arguments give the same plan.

    Parameters
    ----------
    horizon
        Steps that are imagined.
    seed
        Of all that is drawn at random.
    """

    horizon: int
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)
        check_count("seed", self.seed, at_least=0)

    def __call__(
        self,
        model: WorldModel,
        obs: npt.ArrayLike,
        objective: Objective | None = None,
        *,
        previous: Plan | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Any, Plan]:
        """Decide what to do now.

        Parameters
        ----------
        model
            What imagines. Anything with `WorldModel.step` and its two spaces.
        obs
            One observation.
        objective
            What to maximise; None for the rewards that the model has learned.
        previous
            The plan of the decision before, in the same episode.
        rng
            Where random numbers come from; None for the planner's seed and the age of the plan.

        Returns
        -------
        action
            The first action of the plan, an element of the action space.
        plan
            All of it.

        Raises
        ------
        TypeError
            If the planner does not know such an action space.
        FloatingPointError
            If the model has diverged: no imagined future stays finite.
        """
        self.require_suitable(model.action_space)
        wish = Objective() if objective is None else objective
        age = 0 if previous is None else previous.age + 1
        rng = np.random.default_rng([self.seed, age]) if rng is None else rng
        task = Task(model, obs, wish, self._shifted(previous), rng)
        actions, candidates = self._search(task)
        observations, value = _follow(task.futures(), actions)
        plan = Plan(actions, observations, value, candidates, age)
        return actions[0], plan

    @classmethod
    @abstractmethod
    def suits(cls, action_space: spaces.Space[Any]) -> bool:
        """Whether it can plan such actions."""

    def require_suitable(self, action_space: spaces.Space[Any]) -> None:
        """Raise `TypeError` for actions that this planner cannot plan."""
        if not self.suits(action_space):
            raise TypeError(
                f"{type(self).__name__} cannot plan the actions {action_space}: MPPI, CEM, ICEM "
                "and RandomShooting plan a Box of real numbers with finite bounds, BeamSearch and "
                "RandomShooting a Discrete. Wrap the environment, or choose another planner."
            )

    def settings(self) -> dict[str, Any]:
        """The arguments that the planner was made with."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @abstractmethod
    def _search(self, task: Task) -> tuple[Rows, Rows]:
        """The sequence of actions, (horizon, ...), and candidates for the next decision."""

    def _shifted(self, previous: Plan | None) -> Rows | None:
        """Candidates without their first action; the last one is repeated."""
        if previous is None:
            return None
        old = previous.candidates
        if old.shape[1] != self.horizon:
            raise ValueError(
                f"previous has a horizon of {old.shape[1]}, but this planner one of "
                f"{self.horizon}: give plans of the same planner, or None."
            )
        return np.concatenate([old[:, 1:], old[:, -1:]], axis=1)


def _follow(futures: Futures, actions: Rows) -> tuple[Rows, float]:
    """Where one sequence of actions leads, and what it gains."""
    visited = [futures.obs[0]]
    for action in actions:
        futures.step(action[None])
        visited.append(futures.obs[0])
    return np.stack(visited), float(futures.returns()[0])
