"""Dynamics of a simulator that is set to each state and stepped: exact, one row after the other.

For environments whose rules are too long to be written down for many rows, as MuJoCo's. What an
observation does not show is set to zero: the place of the body along its way, which no rule
depends on. `Walker2d-v5` and `InvertedDoublePendulum-v5` clip velocities at 10 in what they show,
so fast states are not determined by it, and the simulator errs there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from losse.envs.true_dynamics import Outcome, TrueDynamics
from losse.typing import Array

Put = Callable[[Any, Array], None]
"""Brings an unwrapped environment into the state that an observation shows."""


class SimulatedDynamics(TrueDynamics):
    """A copy of an environment, whose states are its observations."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        assert env.spec is not None
        spec = gymnasium.spec(env.spec.id)
        self._put = PUTS[spec.id]
        copy: Any = gymnasium.make(spec, **env.spec.kwargs | {"render_mode": None}).unwrapped
        copy.reset(seed=0)
        if copy.observation_space.shape != env.unwrapped.observation_space.shape:
            raise ValueError(f"{env.spec.id} was made in a way that cannot be repeated.")
        super().__init__(copy, copy.observation_space.low, copy.observation_space.high)

    def step(self, states: Array, actions: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Set the simulator to each state, and step it."""
        reached = np.empty(states.shape)
        rewards, terminated = np.empty(len(states)), np.empty(len(states), dtype=bool)
        for row, (state, action) in enumerate(zip(states, actions, strict=True)):
            self._put(self.env, state)
            reached[row], rewards[row], terminated[row], _, _ = self.env.step(action)
        return Outcome(reached, rewards, terminated)

    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Not known: the environment says so only when it arrives."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator) -> Array:
        """Not known: raises `ValueError`."""
        raise ValueError(
            f"where episodes of {self.env} can start is not known: do without exploring starts."
        )


def _put_pendulum(env: Any, obs: Array) -> None:
    env.state = np.array([np.arctan2(obs[1], obs[0]), obs[2]])


def _put_state(env: Any, obs: Array) -> None:
    env.state = obs.copy()


def _put_cart_pole(env: Any, obs: Array) -> None:
    env.state = obs.copy()
    env.steps_beyond_terminated = None


def _put_body(hidden: int) -> Put:
    """Positions, without the first few, and velocities."""

    def put(env: Any, obs: Array) -> None:
        positions = env.model.nq - hidden
        env.set_state(np.concatenate([np.zeros(hidden), obs[:positions]]), obs[positions:])

    return put


def _put_double_pendulum(env: Any, obs: Array) -> None:
    env.set_state(np.concatenate([obs[:1], np.arctan2(obs[1:3], obs[3:5])]), obs[5:8])


def _put_reacher(env: Any, obs: Array) -> None:
    cosines, sines, target, speed = obs[:2], obs[2:4], obs[4:6], obs[6:8]
    angles = np.arctan2(sines, cosines)
    env.set_state(np.concatenate([angles, target]), np.concatenate([speed, [0.0, 0.0]]))


PUTS: dict[str, Put] = {
    "CartPole-v1": _put_cart_pole,
    "Pendulum-v1": _put_pendulum,
    "MountainCarContinuous-v0": _put_state,
    "InvertedPendulum-v5": _put_body(0),
    "InvertedDoublePendulum-v5": _put_double_pendulum,
    "Reacher-v5": _put_reacher,
    "HalfCheetah-v5": _put_body(1),
    "Hopper-v5": _put_body(1),
    "Walker2d-v5": _put_body(1),
}
"""Environments that can be put into the state which an observation shows, by their ids."""
