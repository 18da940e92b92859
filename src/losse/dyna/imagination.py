"""Imagined transitions: start states, the agent's actions, the world model's answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from losse.dyna.agents import Rows, act, is_stochastic
from losse.dyna.options import DynaOptions
from losse.dyna.search import RECENT, SEARCH_CONTROLS, Visited
from losse.typing import Array
from losse.world import WorldModel
from losse.world.transitions import Transitions

COMPARED = 256
"""Newest states whose standard deviations say where the model counts as sure."""


def imagine(
    agent: Any, model: WorldModel, options: DynaOptions, visited: Visited, n: int
) -> Transitions:
    """Exactly ``n`` imagined transitions in the environment's units, all computed together.

    With a horizon above 1, or where the model is not sure, rows may end early. Then those that
    there are are drawn from, once more where they are too few. If the model is sure nowhere, single
    steps are imagined all the same.
    """
    control = SEARCH_CONTROLS[options.search_control]
    horizon = options.horizon_at(agent.num_timesteps)
    n_starts = -(-n // horizon)
    starts = control.starts(visited, n_starts)
    share = _own_share(agent) if control.own_actions else options.greedy_share

    if horizon == 1 and options.sure_share is None:
        actions = _actions(agent, visited, starts, share)
        next_obs, rewards, terminated = model.step(starts, actions)
        return Transitions(starts, actions, rewards, next_obs, terminated)

    def policy(obs: Rows) -> Rows:
        # SBX compiles anew for each number of rows: rows that have ended are filled up.
        padded = np.concatenate([obs, np.repeat(obs[:1], n_starts - len(obs), axis=0)])
        return _actions(agent, visited, padded, share)[: len(obs)]

    limit = None
    if options.sure_share is not None:
        compared = visited.obs(visited.newest(COMPARED, RECENT))
        chosen = _actions(agent, visited, compared, share)
        limit = _largest_std(model, compared, chosen, options.sure_share)
    rolled = model.rollout(starts, policy, horizon, max_std=limit)
    if not len(rolled):
        rolled = model.rollout(starts, policy, 1)
    rows = visited.rng.permutation(len(rolled))[:n]
    if len(rows) < n:
        rows = np.concatenate([rows, visited.rng.integers(len(rolled), size=n - len(rows))])
    return rolled.take(rows)


def require_std(model: WorldModel, sure_share: float) -> None:
    """Raise `ValueError` unless a model knows how sure it is."""
    if not model.has_std:
        raise ValueError(
            f"sure_share={sure_share} needs a world model that knows how sure it is, and "
            f"{type(model).__name__} does not: use LosseWorldModel, or leave it out."
        )


def _largest_std(model: WorldModel, obs: Rows, actions: Rows, share: float) -> Array:
    """Deviation of each dimension that a share of these steps does not exceed."""
    *_, std = model.step(obs, actions, return_std=True)
    # Deviations may be infinite, which has no mean with others, or zero, which is no limit.
    limit = np.quantile(std, share, axis=0, method="higher")
    return np.maximum(limit, np.finfo(np.float64).tiny)


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
