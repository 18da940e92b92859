"""`Explorer`: a worker of a fleet, which acts in an environment of its own and learns from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from losse.distributed.increments import Header
from losse.world import LosseWorldModel
from losse.world.transitions import Transitions

Environment = str | Callable[..., gymnasium.Env]
"""Id of a registered environment, as ``"CartPole-v1"`` or ``"module:id"``, or what makes one."""

Policy = Callable[[Any, LosseWorldModel], Any]
"""A function of an observation and the worker's world model to an action."""


def seed_of(fleet: int, worker: int, incarnation: int) -> int:
    """Seed of a worker's environment, which it has whatever others do.

    >>> seed_of(0, 3, 1) == seed_of(0, 3, 0)
    False
    """
    return int(np.random.SeedSequence([fleet, worker, incarnation]).generate_state(1)[0])


class Explorer:
    """One environment, a policy, and the transitions since the last sync.

    Parameters
    ----------
    worker, incarnation
        Number of the worker, and how often it was started before.
    env, env_kwargs
        The environment, and arguments to make it with.
    policy
        None for random actions. Otherwise the worker has a world model, to which every transition
        is added at once.
    seed
        Seed of the fleet.
    """

    def __init__(
        self,
        worker: int,
        incarnation: int,
        env: Environment,
        env_kwargs: Mapping[str, Any],
        policy: Policy | None,
        seed: int,
    ) -> None:
        self._name = worker, incarnation
        self._make = env, dict(env_kwargs)
        self._policy = policy
        self._seed = seed_of(seed, worker, incarnation)
        self._sequence = 0
        self._model: LosseWorldModel | None = None
        self._empty: LosseWorldModel | None = None
        self._env: gymnasium.Env
        self._obs: Any

    def begin(self) -> tuple[gymnasium.Space, gymnasium.Space]:
        """Make the environment, and return its spaces."""
        env, kwargs = self._make
        self._env = gymnasium.make(env, **kwargs) if isinstance(env, str) else env(**kwargs)
        self._obs, _ = self._env.reset(seed=self._seed)
        self._env.action_space.seed(self._seed)
        return self._env.observation_space, self._env.action_space

    def explore(
        self, model: LosseWorldModel | None, n_steps: int, sums: bool
    ) -> tuple[Header, LosseWorldModel | Transitions]:
        """Take some steps, and return what has been learned from them.

        Parameters
        ----------
        model
            The merged model; None: it is not needed, or as before.
        n_steps
            Number of transitions.
        sums
            Whether to return a model that has learned these transitions alone, rather than
            themselves.
        """
        if model is not None:
            self._model, self._empty = model, model.like() if sums else None
        seen = Transitions.from_steps([self._step() for _ in range(n_steps)])
        header = Header(*self._name, self._sequence, len(seen))
        self._sequence += 1
        if not sums:
            return header, seen
        assert self._empty is not None
        increment = self._empty.like()
        increment.update(*seen)
        return header, increment

    def _step(self) -> tuple[Any, ...]:
        if self._policy is None:
            action = self._env.action_space.sample()
        else:
            assert self._model is not None
            action = self._policy(self._obs, self._model)
        following, reward, terminated, truncated, _ = self._env.step(action)
        step = (self._obs, action, float(reward), following, bool(terminated))
        if self._policy is not None and self._model is not None:
            self._model.update(*Transitions.from_steps([step]))
        self._obs = self._env.reset()[0] if terminated or truncated else following
        return step
