"""Imagined transitions: start states, the agent's actions, the world model's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.dyna.agents import AGENTS, Rows, act, is_stochastic
from losse.dyna.divergence import sizes
from losse.dyna.options import DynaOptions
from losse.dyna.pool import Pool
from losse.dyna.search import RECENT, SEARCH_CONTROLS, Visited
from losse.typing import Array
from losse.world import WorldModel
from losse.world.registry import FUNCTIONAL
from losse.world.transitions import Transitions

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer

COMPARED = 256
"""Newest states whose standard deviations say where the model counts as sure."""


class Imagination:
    """An agent and a model that imagine, as NumPy arrays on the host.

    Parameters
    ----------
    agent, model
        Who acts, and what answers.
    options
        Where imagination starts, how far it goes, and which actions it takes.
    """

    def __init__(self, agent: Any, model: WorldModel, options: DynaOptions) -> None:
        self.agent = agent
        self.model = model
        self.options = options

    def imagine(self, visited: Visited, n: int) -> Transitions:
        """Exactly ``n`` imagined transitions in the environment's units, all computed together.

        With a horizon above 1, or where the model is not sure, rows may end early. Then those that
        there are are drawn from, once more where they are too few. If the model is sure nowhere,
        single steps are imagined all the same.
        """
        control = SEARCH_CONTROLS[self.options.search_control]
        horizon = self.options.horizon_at(self.agent.num_timesteps)
        starts = control.starts(visited, -(-n // horizon))
        share = self._own_share if control.own_actions else self.options.greedy_share
        return self._followed(visited, starts, share, horizon, n)

    def pool(self, pool: Pool) -> Pool:
        """A pool of these arrays, with the rows of another."""
        return pool

    def sizes(self, made: Transitions) -> Mapping[str, float]:
        """Largest absolute values of what was imagined, by the names of the columns."""
        return sizes(made)

    def minibatches(
        self,
        buffer: DynaReplayBuffer,
        made: Transitions,
        real: Transitions,
        imagined: npt.NDArray[np.bool_],
        normaliser: Any,
    ) -> Any:
        """Imagined and real rows as agents take them, each in its place."""
        columns = buffer.columns(made, normaliser)
        if len(real):
            pairs = zip(columns, buffer.columns(real, normaliser), strict=True)
            # One behind the other, then each row to its place: half the time of two masks.
            order = np.where(imagined, np.cumsum(imagined), len(made) + np.cumsum(~imagined)) - 1
            columns = [np.concatenate(pair).take(order, axis=0) for pair in pairs]
        return buffer.samples(columns, normaliser)

    @property
    def _own_share(self) -> float:
        return 1.0 - getattr(self.agent, "exploration_rate", 0.0)

    def _followed(
        self, visited: Visited, starts: Rows, share: float, horizon: int, n: int
    ) -> Transitions:
        """What follows from some starts, ``n`` rows of it."""
        if horizon == 1 and self.options.sure_share is None:
            actions = self._actions(visited, starts, share)
            next_obs, rewards, terminated = self.model.step(starts, actions)
            return Transitions(starts, actions, rewards, next_obs, terminated)

        def policy(obs: Rows) -> Rows:
            # SBX compiles anew for each number of rows: rows that have ended are filled up.
            padded = np.concatenate([obs, np.repeat(obs[:1], len(starts) - len(obs), axis=0)])
            return self._actions(visited, padded, share)[: len(obs)]

        limit = self._limit(visited, share)
        rolled = self.model.rollout(starts, policy, horizon, max_std=limit)
        if not len(rolled):
            rolled = self.model.rollout(starts, policy, 1)
        rows = visited.rng.permutation(len(rolled))[:n]
        if len(rows) < n:
            rows = np.concatenate([rows, visited.rng.integers(len(rolled), size=n - len(rows))])
        return rolled.take(rows)

    def _limit(self, visited: Visited, share: float) -> Array | None:
        """Deviation of each dimension above which the model counts as unsure, if any does."""
        wanted = self.options.sure_share
        if wanted is None:
            return None
        compared = visited.obs(visited.newest(COMPARED, RECENT))
        actions = self._actions(visited, compared, share)
        *_, std = self.model.step(compared, actions, return_std=True)
        # Deviations may be infinite, which has no mean with others, or zero, which is no limit.
        limit = np.quantile(std, wanted, axis=0, method="higher")
        return np.maximum(limit, np.finfo(np.float64).tiny)

    def _actions(self, visited: Visited, obs: Rows, share: float) -> Rows:
        """Actions of the agent; where it is not stochastic itself, a part is drawn uniformly."""
        stochastic = is_stochastic(self.agent)
        if share == 0 and not stochastic:
            return visited.conversion.random_actions(len(obs), visited.rng)
        actions = act(self.agent, visited.seen(obs), deterministic=not stochastic)
        if stochastic or share == 1:
            return actions
        random = visited.conversion.random_actions(len(obs), visited.rng)
        greedy = visited.rng.random(len(obs)) < share
        return np.where(greedy.reshape(-1, *[1] * (actions.ndim - 1)), actions, random)


def imagination_of(agent: Any, model: WorldModel, options: DynaOptions) -> Imagination:
    """How such an agent imagines with such a model: on the device, if that is where it is."""
    require_together(type(agent), model, agent.observation_space)
    if not model.on_device:
        return Imagination(agent, model, options)
    from losse.dyna.imagination_jax import DeviceImagination

    return DeviceImagination(agent, model, options)


def require_std(model: WorldModel, sure_share: float) -> None:
    """Raise `ValueError` unless a model knows how sure it is."""
    if not model.has_std:
        raise ValueError(
            f"sure_share={sure_share} needs a world model that knows how sure it is, and "
            f"{type(model).__name__} does not: use LosseWorldModel, or leave it out."
        )


def require_together(
    agent_class: type[Any], model: WorldModel | str, observation_space: spaces.Space[Any]
) -> None:
    """Raise `TypeError` if a model, or the one of a name, imagines where the agent cannot follow.

    >>> from stable_baselines3 import DQN
    >>> require_together(DQN, "jax", spaces.Box(0, 1, (2,)))
    Traceback (most recent call last):
    ...
    TypeError: world_model='jax' imagines on JAX's device, for agents of SBX, and \
agent_class=stable_baselines3.dqn.dqn.DQN is none: use sbx.DQN, ...
    """
    name = model if isinstance(model, str) else type(model).__name__
    if name != FUNCTIONAL and not getattr(model, "on_device", False):
        return
    if not any(base.__module__.startswith("sbx.") for base in agent_class.__mro__):
        suitable = [entry.classes["sbx"] for entry in AGENTS.values() if "sbx" in entry.classes]
        raise TypeError(
            f"world_model={name!r} imagines on JAX's device, for agents of SBX, and agent_class="
            f"{agent_class.__module__}.{agent_class.__name__} is none: use "
            f"{', '.join(suitable)}, or world_model='losse'."
        )
    if isinstance(observation_space, spaces.Dict):
        raise TypeError(
            f"observation_space={observation_space!r} is not possible with world_model={name!r}: "
            "put gymnasium.wrappers.FlattenObservation around the environment, or use "
            "world_model='losse'."
        )
