"""`PerfectModel`: the true dynamics of an environment in the place of a world model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Self

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.wrappers import RescaleObservation

from losse.envs.true_dynamics import true_dynamics
from losse.storage.jsonfile import write_json
from losse.typing import Array
from losse.world.model import WorldModel


class PerfectModel(WorldModel):
    """The truth about an environment, where a world model is expected; it has nothing to learn.

    If an agent fails with it, a better model is not what it lacks. In an environment with noise it
    draws noise of its own, so that its error is not zero there.

    Parameters
    ----------
    env
        One of those in `losse.envs.true_dynamics.KNOWN`, or, more slowly, of those in
        `losse.envs.simulated_dynamics.PUTS`. Of the wrappers that change what is seen it may have
        `gymnasium.wrappers.RescaleObservation`.
    seed
        Of the noise.

    Examples
    --------
    >>> import gymnasium
    >>> import numpy as np
    >>> from losse.world import PerfectModel
    >>> env = gymnasium.make("MountainCar-v0")
    >>> obs, info = env.reset(seed=0)
    >>> imagined, rewards, terminated = PerfectModel(env).step(obs[None], [2])
    >>> np.allclose(imagined[0], env.step(2)[0])
    True
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0) -> None:
        self._truth = true_dynamics(env)
        _require_plain(env)
        super().__init__(env.observation_space, env.action_space)
        self._seen, self._own = _bounds(env), _bounds(env.unwrapped)
        self.rng = np.random.default_rng(seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the environment does not know: how much was seen, and the noise to come."""
        with self.lock:
            noise = self.rng.bit_generator.state
            write_json(path, {"n_transitions": self.n_transitions, "noise": noise})

    @classmethod
    def load(cls, path: str | os.PathLike[str], env: gymnasium.Env[Any, Any]) -> Self:
        """The model of an environment that goes on as the saved one would."""
        model = cls(env)
        try:
            saved = json.loads(Path(path).read_text(encoding="utf-8"))
            model.rng.bit_generator.state = saved["noise"]
            model.n_transitions = int(saved["n_transitions"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(f"{os.fspath(path)} is not a saved PerfectModel: {error}") from error
        return model

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """There is nothing to learn."""

    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        truth = self._truth
        before = truth.states(_mapped(states, self._seen, self._own))
        after, rewards, terminated = truth.step(before, actions, self.rng)
        seen = _mapped(truth.observe(after), self._own, self._seen)
        return np.column_stack([seen - states, rewards, terminated])


def _require_plain(env: gymnasium.Env[Any, Any]) -> None:
    """Raise unless all wrappers leave the truth as it is, or rescale it by known bounds."""
    changing = gymnasium.ObservationWrapper, gymnasium.RewardWrapper, gymnasium.ActionWrapper
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, changing) and not isinstance(env, RescaleObservation):
            raise ValueError(
                f"what {type(env).__name__} does to {env.unwrapped} is not known: a PerfectModel "
                "can see through RescaleObservation only."
            )
        env = env.env


def _bounds(env: gymnasium.Env[Any, Any]) -> tuple[Array, Array]:
    space = env.observation_space
    assert isinstance(space, spaces.Box)
    return space.low.astype(np.float64), space.high.astype(np.float64)


def _mapped(rows: Array, old: tuple[Array, Array], new: tuple[Array, Array]) -> Array:
    """Rows of one box, in the units of another; if they are the same, they may be infinite."""
    if np.array_equal(old, new):
        return rows
    scale = (new[1] - new[0]) / (old[1] - old[0])
    return new[0] + (rows - old[0]) * scale
