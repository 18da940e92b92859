"""How transitions are imagined: start states, the agent's actions, the world model's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from losse.dyna.agents import act, is_stochastic
from losse.dyna.planning import Planning
from losse.dyna.search import SEARCH_CONTROLS
from losse.dyna.units import Rows, Transitions, Units
from losse.dyna.visited import Visited
from losse.world import WorldModel

TOO_FAR = 1e3
"""A prediction this many times larger than anything seen means that the model has diverged."""


def imagine(
    agent: Any, model: WorldModel, planning: Planning, units: Units, visited: Visited, n: int
) -> Transitions:
    """Exactly ``n`` imagined transitions in the environment's units, all computed together.

    With a horizon above 1 rows may end early. Then those that there are are drawn from, once more
    where they are too few.
    """
    control = SEARCH_CONTROLS[planning.search_control]
    n_starts = -(-n // planning.horizon)
    starts = control.starts(visited, n_starts)
    share = _own_share(agent) if control.own_actions else planning.greedy_share

    if planning.horizon == 1:
        actions = _actions(agent, visited, units, starts, share)
        return Transitions(starts, actions, *_outcome(model.step(starts, actions)))

    def policy(obs: Rows) -> Rows:
        # SBX compiles anew for each number of rows: rows that have ended are filled up.
        padded = np.concatenate([obs, np.repeat(obs[:1], n_starts - len(obs), axis=0)])
        return _actions(agent, visited, units, padded, share)[: len(obs)]

    rolled = model.rollout(starts, policy, planning.horizon)
    rows = visited.rng.permutation(len(rolled))[:n]
    if len(rows) < n:
        rows = np.concatenate([rows, visited.rng.integers(len(rolled), size=n - len(rows))])
    return Transitions(
        rolled.obs, rolled.actions, rolled.rewards, rolled.next_obs, rolled.terminated
    ).take(rows)


def _outcome(stepped: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    next_obs, rewards, terminated = stepped
    return rewards, next_obs, terminated


def _own_share(agent: Any) -> float:
    return 1.0 - getattr(agent, "exploration_rate", 0.0)


def _actions(agent: Any, visited: Visited, units: Units, obs: Rows, share: float) -> Rows:
    """What the agent would do; where it is not stochastic itself, a part is drawn uniformly."""
    stochastic = is_stochastic(agent)
    if share == 0 and not stochastic:
        return units.random_actions(len(obs), visited.rng)
    actions = act(agent, visited.seen(obs), deterministic=not stochastic)
    if stochastic or share == 1:
        return actions
    random = units.random_actions(len(obs), visited.rng)
    greedy = visited.rng.random(len(obs)) < share
    return np.where(greedy.reshape(-1, *[1] * (actions.ndim - 1)), actions, random)


class Sanity:
    """Tells a diverged model by predictions that are not finite, or far from all that was seen."""

    def __init__(self, largest_obs: float = 0.0, largest_reward: float = 0.0) -> None:
        self._largest = {"observations": largest_obs, "rewards": largest_reward}

    def see(self, happened: Transitions) -> None:
        """Take note of real transitions."""
        for name, values in (("observations", happened.next_obs), ("rewards", happened.rewards)):
            self._largest[name] = max(self._largest[name], float(np.abs(values).max(initial=0.0)))

    def require(self, imagined: Transitions, model: WorldModel) -> None:
        """Raise `FloatingPointError` if these cannot be true."""
        for name, values in (("observations", imagined.next_obs), ("rewards", imagined.rewards)):
            largest = float(np.abs(values).max(initial=0.0))
            if not largest <= TOO_FAR * (1.0 + self._largest[name]):
                raise FloatingPointError(
                    f"the world model has diverged: after {model.n_transitions} transitions "
                    f"{type(model).__name__} imagines {name} of size {largest:.1e}, but the "
                    f"largest one seen was {self._largest[name]:.1e}. The agent is not at fault. "
                    "Give the model a larger ridge or a lower learning rate, or go on from the "
                    "last checkpoint."
                )
