"""Imagined transitions: start states, the agent's actions, the world model's answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from losse.dyna.agents import Rows, act, is_stochastic
from losse.dyna.options import DynaOptions
from losse.dyna.search import SEARCH_CONTROLS, Visited
from losse.world import WorldModel
from losse.world.transitions import Transitions


def imagine(
    agent: Any, model: WorldModel, options: DynaOptions, visited: Visited, n: int
) -> Transitions:
    """Exactly ``n`` imagined transitions in the environment's units, all computed together.

    With a horizon above 1 rows may end early. Then those that there are are drawn from, once more
    where they are too few.
    """
    control = SEARCH_CONTROLS[options.search_control]
    horizon = options.horizon_at(agent.num_timesteps)
    n_starts = -(-n // horizon)
    starts = control.starts(visited, n_starts)
    share = _own_share(agent) if control.own_actions else options.greedy_share

    if horizon == 1:
        actions = _actions(agent, visited, starts, share)
        next_obs, rewards, terminated = model.step(starts, actions)
        return Transitions(starts, actions, rewards, next_obs, terminated)

    def policy(obs: Rows) -> Rows:
        # SBX compiles anew for each number of rows: rows that have ended are filled up.
        padded = np.concatenate([obs, np.repeat(obs[:1], n_starts - len(obs), axis=0)])
        return _actions(agent, visited, padded, share)[: len(obs)]

    rolled = model.rollout(starts, policy, horizon)
    rows = visited.rng.permutation(len(rolled))[:n]
    if len(rows) < n:
        rows = np.concatenate([rows, visited.rng.integers(len(rolled), size=n - len(rows))])
    return rolled.take(rows)


def _own_share(agent: Any) -> float:
    return 1.0 - getattr(agent, "exploration_rate", 0.0)


def _actions(agent: Any, visited: Visited, obs: Rows, share: float) -> Rows:
    """Actions of the agent; where it is not stochastic itself, a part is drawn uniformly."""
    stochastic = is_stochastic(agent)
    if share == 0 and not stochastic:
        return visited.conversion.random_actions(len(obs), visited.rng)
    actions = act(agent, visited.seen(obs), deterministic=not stochastic)
    if stochastic or share == 1:
        return actions
    random = visited.conversion.random_actions(len(obs), visited.rng)
    greedy = visited.rng.random(len(obs)) < share
    return np.where(greedy.reshape(-1, *[1] * (actions.ndim - 1)), actions, random)
