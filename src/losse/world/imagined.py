"""`ImaginedEnv`: a world model as an environment, in which any agent can be trained."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from losse.checks import check_count
from losse.typing import Array
from losse.world.model import WorldModel
from losse.world.transitions import Values, concatenate, take

Starts = Values | Callable[[int, np.random.Generator], Values]


class ImaginedEnv(VectorEnv[Any, Any, Any]):
    """A Gymnasium vector environment that is imagined by a world model.

    It always shows the model as it is: what the model learns in the meantime takes effect at once.
    An episode ends where the model says so, or is truncated after ``max_episode_steps``. The
    step after that starts a new one (Gymnasium's ``AutoresetMode.NEXT_STEP``): its action is
    ignored, its reward zero.

    Parameters
    ----------
    model
        Any world model.
    start_states
        Observations of which each episode starts at a random one; or a function of (n, generator)
        to n of them.
    num_envs
        Episodes at a time.
    max_episode_steps
        Length at which episodes are truncated; None for no limit. A model's errors grow from
        step to step, so keep it short.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import ImaginedEnv, LosseWorldModel
    >>> model = LosseWorldModel(Box(0, 1, (2,)), Discrete(4))
    >>> envs = ImaginedEnv(model, [[0.1, 0.1], [0.9, 0.9]], num_envs=3, max_episode_steps=20)
    >>> obs, info = envs.reset(seed=0)
    >>> obs.shape
    (3, 2)
    >>> obs, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    >>> rewards.shape
    (3,)
    """

    def __init__(
        self,
        model: WorldModel,
        start_states: Starts,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
    ) -> None:
        check_count("num_envs", num_envs)
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.model = model
        self.num_envs = num_envs
        self.single_observation_space = model.observation_space
        self.single_action_space = model.action_space
        self.observation_space = batch_space(model.observation_space, num_envs)
        self.action_space = batch_space(model.action_space, num_envs)
        self._episodes = _Episodes(model, start_states, max_episode_steps)
        self._obs: Values | None = None
        self._ended = np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Values, dict[str, Any]]:
        """Start ``num_envs`` new episodes."""
        super().reset(seed=seed)
        self._obs = self._episodes.start(self.num_envs, self.np_random)
        self._age = np.zeros(self.num_envs, dtype=np.int64)
        self._ended[:] = False
        return deepcopy(self._obs), {}

    def step(
        self, actions: Values
    ) -> tuple[Values, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Imagine one step of every episode, or the start of a new one where it has ended."""
        _require_reset(self._obs)
        obs, rewards, terminated = self.model.step(self._obs, actions)
        self._age += 1
        new = self._ended
        if new.any():
            starts = self._episodes.start(int(new.sum()), self.np_random)
            source = np.arange(self.num_envs)
            source[new] = self.num_envs + np.arange(new.sum())
            obs = take(concatenate([obs, starts]), source)
            rewards[new], terminated[new], self._age[new] = 0.0, False, 0
        truncated = self._episodes.over(self._age) & ~terminated
        self._obs, self._ended = obs, terminated | truncated
        return deepcopy(obs), rewards, terminated, truncated, {}

    def single(self) -> ImaginedSingleEnv:
        """The same as a plain Gymnasium environment of one episode at a time."""
        episodes = self._episodes
        return ImaginedSingleEnv(self.model, episodes.start_states, episodes.max_steps)


class ImaginedSingleEnv(gymnasium.Env[Any, Any]):
    """One imagined episode at a time, as a plain Gymnasium environment.

    Parameters are those of `ImaginedEnv`.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import ImaginedEnv, LosseWorldModel
    >>> model = LosseWorldModel(Box(0, 1, (2,)), Discrete(4))
    >>> env = ImaginedEnv(model, [[0.5, 0.5]], max_episode_steps=20).single()
    >>> env.reset(seed=0)
    (array([0.5, 0.5], dtype=float32), {})
    """

    def __init__(
        self, model: WorldModel, start_states: Starts, max_episode_steps: int | None = None
    ) -> None:
        self.metadata = {"render_modes": []}
        self.model = model
        self.observation_space = model.observation_space
        self.action_space = model.action_space
        self._episodes = _Episodes(model, start_states, max_episode_steps)
        self._obs: Values | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode."""
        super().reset(seed=seed)
        self._obs = self._episodes.start(1, self.np_random)
        self._age = 0
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Imagine one step."""
        _require_reset(self._obs)
        self._obs, rewards, terminated = self.model.step(
            self._obs, self.model.actions.single(action)
        )
        self._age += 1
        truncated = bool(self._episodes.over(self._age)) and not terminated[0]
        return self._shown(), float(rewards[0]), bool(terminated[0]), bool(truncated), {}

    def _shown(self) -> Any:
        return deepcopy(take(self._obs, 0))


class _Episodes:
    """Where imagined episodes start and when they are cut off."""

    def __init__(self, model: WorldModel, start_states: Starts, max_steps: int | None) -> None:
        if max_steps is not None:
            check_count("max_episode_steps", max_steps)
        self.model = model
        self.start_states, self.n_starts = start_states, 0
        if not callable(start_states):
            self.start_states, self.n_starts = self._checked(start_states)
        self.max_steps = max_steps

    def start(self, count: int, rng: np.random.Generator) -> Values:
        """Observations to begin with."""
        if not callable(self.start_states):
            return take(self.start_states, rng.integers(self.n_starts, size=count))
        states, n = self._checked(self.start_states(count, rng))
        if n != count:
            raise ValueError(f"start_states returned {n} rows instead of {count}.")
        return states

    def over(self, age: Any) -> Any:
        """Whether episodes of this many steps are cut off."""
        return age >= (np.inf if self.max_steps is None else self.max_steps)

    def _checked(self, states: Values) -> tuple[Values, int]:
        """Start states as the space has them, and their number."""
        observations = self.model.observations
        rows = observations.rows("start_states", states)
        if not len(rows):
            raise ValueError("start_states is empty: pass at least one observation.")
        return observations.restore(rows), len(rows)


def _require_reset(obs: Values | None) -> None:
    if obs is None:
        raise gymnasium.error.ResetNeeded("Call reset() before step().")
