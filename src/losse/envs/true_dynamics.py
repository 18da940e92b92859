"""True dynamics of environments whose rules are known: the base class and one class for each.

Noise is drawn anew: it is true in distribution, not number by number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, MountainCarEnv
from numpy.typing import ArrayLike, NDArray

from losse.envs.gridworld import Gridworld
from losse.envs.gridworld_dynamics import at_goal, in_barrier, move
from losse.typing import Array

KNOWN = ("losse/Gridworld-v0", "MountainCar-v0", "Acrobot-v1")
"""Ids of the environments whose rules are written down here, for many states at once.

`losse.envs.simulated_dynamics.PUTS` has those whose simulator is set to each state instead.
"""


class Outcome(NamedTuple):
    """Result of one step from each of several states, one row each."""

    states: Array
    rewards: Array
    terminated: NDArray[np.bool_]


class TrueDynamics(ABC):
    """The rules of an environment, for any number of states at once.

    A state is what the environment itself goes by, (n, width); an observation shows it.

    Parameters
    ----------
    env
        The unwrapped environment. Its constants are read from it at every step.
    low, high
        Bounds of its states.
    """

    def __init__(self, env: Any, low: ArrayLike, high: ArrayLike) -> None:
        self.env = env
        self.low = np.asarray(low, dtype=np.float64)
        self.high = np.asarray(high, dtype=np.float64)

    @abstractmethod
    def step(self, states: Array, actions: NDArray[Any], rng: np.random.Generator) -> Outcome:
        """Outcome of each action in each state; ``rng`` is for environments with noise."""

    @abstractmethod
    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Whether an episode is over in each state."""

    def excluded(self, states: Array) -> NDArray[np.bool_]:
        """Whether each state is one in which no episode can be under way."""
        return self.ended(states)

    def draw(self, rng: np.random.Generator) -> Array:
        """One state, uniform over all in which an episode can be under way."""
        while True:
            state = rng.uniform(self.low, self.high)
            if not self.excluded(state[None])[0]:
                return state

    def put(self, state: Array) -> None:
        """Bring the environment, which must have been reset, into a state."""
        self.env.state = state

    def observe(self, states: Array) -> Array:
        """The observations of states, not rounded yet."""
        return states

    def states(self, obs: Array) -> Array:
        """The states that observations show."""
        return obs


class GridworldTruth(TrueDynamics):
    """The Gridworld, with the layout, noise and reward of the environment given."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, (0.0, 0.0), (1.0, 1.0))

    def step(self, states: Array, actions: NDArray[np.int64], rng: np.random.Generator) -> Outcome:
        """Move as `losse.envs.gridworld_dynamics.move`."""
        noise = rng.normal(0.0, self.env.noise, size=len(states))
        moved = move(states, actions, noise, self.env.layout)
        arrived = self.ended(moved)
        worst = -1.0 if self.env.reward == "step" else 0.0
        return Outcome(moved, np.where(arrived, worst + 1.0, worst), arrived)

    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Whether each point lies in the goal."""
        return at_goal(states)

    def excluded(self, states: Array) -> NDArray[np.bool_]:
        """Whether each point lies in the goal or the barrier."""
        return at_goal(states) | in_barrier(states, self.env.layout)

    def put(self, state: Array) -> None:
        """Reset the environment to this start."""
        self.env.reset(options={"start": state})


class MountainCarTruth(TrueDynamics):
    """Gymnasium's MountainCar: position and velocity."""

    def __init__(self, env: Any) -> None:
        low, high = (env.min_position, -env.max_speed), (env.max_position, env.max_speed)
        super().__init__(env, low, high)

    def step(self, states: Array, actions: NDArray[np.int64], rng: np.random.Generator) -> Outcome:
        """Push, roll, and stop dead at the wall on the left."""
        env = self.env
        position, velocity = states.T
        velocity = velocity + (actions - 1) * env.force - np.cos(3 * position) * env.gravity
        velocity = np.clip(velocity, -env.max_speed, env.max_speed)
        position = np.clip(position + velocity, env.min_position, env.max_position)
        velocity[(position == env.min_position) & (velocity < 0)] = 0.0
        moved = np.column_stack([position, velocity])
        return Outcome(moved, np.full(len(moved), -1.0), self.ended(moved))

    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Whether each car is on the hill and not rolling back."""
        position, velocity = states.T
        return (position >= self.env.goal_position) & (velocity >= self.env.goal_velocity)


class AcrobotTruth(TrueDynamics):
    """Gymnasium's Acrobot: two angles and their velocities."""

    def __init__(self, env: Any) -> None:
        high = np.array([np.pi, np.pi, env.MAX_VEL_1, env.MAX_VEL_2])
        super().__init__(env, -high, high)

    def step(self, states: Array, actions: NDArray[np.int64], rng: np.random.Generator) -> Outcome:
        """One step of Runge and Kutta's method through the environment's own derivative."""
        env, dt = self.env, self.env.dt
        noise = rng.uniform(-env.torque_noise_max, env.torque_noise_max, size=len(states))
        torque = np.asarray(env.AVAIL_TORQUE)[actions] + noise

        def slope(at: Array) -> Array:
            # Gymnasium has no public name for it, and a copy could differ from the environment's.
            return np.stack(env._dsdt(np.vstack([at, torque]))[:-1])

        start = states.T
        k1 = slope(start)
        k2 = slope(start + dt / 2 * k1)
        k3 = slope(start + dt / 2 * k2)
        k4 = slope(start + dt * k3)
        moved = (start + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)).T
        moved[:, :2] = (moved[:, :2] + np.pi) % (2 * np.pi) - np.pi
        moved[:, 2:] = np.clip(moved[:, 2:], self.low[2:], self.high[2:])
        arrived = self.ended(moved)
        return Outcome(moved, np.where(arrived, 0.0, -1.0), arrived)

    def ended(self, states: Array) -> NDArray[np.bool_]:
        """Whether each tip is above the bar by the length of a link."""
        first, second = states[:, 0], states[:, 1]
        return -np.cos(first) - np.cos(first + second) > 1.0

    def observe(self, states: Array) -> Array:
        """Cosine and sine of each angle, and the velocities."""
        first, second = states[:, 0], states[:, 1]
        angles = [np.cos(first), np.sin(first), np.cos(second), np.sin(second)]
        return np.column_stack([*angles, states[:, 2:]])

    def states(self, obs: Array) -> Array:
        """The angles of the sines and cosines, and the velocities."""
        angles = [np.arctan2(obs[:, 1], obs[:, 0]), np.arctan2(obs[:, 3], obs[:, 2])]
        return np.column_stack([*angles, obs[:, 4:]])


_TRUTHS: dict[type[Any], Callable[[Any], TrueDynamics]] = {
    Gridworld: GridworldTruth,
    MountainCarEnv: MountainCarTruth,
    AcrobotEnv: AcrobotTruth,
}


def true_dynamics(env: gymnasium.Env[Any, Any]) -> TrueDynamics:
    """The rules of an environment, wrapped or not; ValueError if they are not known.

    Examples
    --------
    >>> import gymnasium
    >>> import numpy as np
    >>> truth = true_dynamics(gymnasium.make("MountainCar-v0"))
    >>> left, right = 0, 2
    >>> at_rest = np.array([[-1.2, 0.0], [0.49, 0.07]])
    >>> truth.step(at_rest, np.array([left, right]), np.random.default_rng(0)).terminated
    array([False,  True])
    """
    # A subclass may have other rules.
    found = _TRUTHS.get(type(env.unwrapped))
    if found is None:
        name = env.spec.id if env.spec else type(env.unwrapped).__name__
        from losse.envs.simulated_dynamics import PUTS, SimulatedDynamics

        if name in PUTS:
            return SimulatedDynamics(env)
        raise ValueError(
            f"the true dynamics of {name!r} are not known: choose from "
            f"{', '.join((*KNOWN, *PUTS))}, or do without a perfect model and exploring starts."
        )
    return found(env.unwrapped)
