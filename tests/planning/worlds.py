"""Worlds with known best actions: a linear one with quadratic costs, and a point on a line."""

import gymnasium
import numpy as np
from gymnasium import spaces

from losse.world import WorldModel

A = np.array([[1.0, 0.1], [0.0, 1.0]])
B = np.array([[0.0], [0.1]])
Q, R = np.diag([1.0, 0.1]), np.array([[0.05]])


class LinearModel(WorldModel):
    """A double integrator: next = A s + B a, reward = -(next' Q next + a' R a)."""

    def __init__(self, low=-20.0, high=20.0):
        line = spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)
        super().__init__(line, spaces.Box(np.float64(low), np.float64(high), (1,), np.float64))

    def _learn(self, states, actions, targets):
        pass

    def _predict(self, states, actions):
        after = states @ A.T + actions @ B.T
        cost = np.einsum("ni,ij,nj->n", after, Q, after) + R[0, 0] * actions[:, 0] ** 2
        return np.column_stack([after - states, -cost, np.zeros(len(states))])


def best_return(state, horizon):
    """First action and return of the linear-quadratic regulator, by Riccati's recursion."""
    value = np.zeros((2, 2))  # cost to go: s' value s
    gain = None
    for _ in range(horizon):
        middle = Q + value
        gain = np.linalg.solve(R + B.T @ middle @ B, B.T @ middle @ A)
        value = A.T @ middle @ (A - B @ gain)
    return -gain @ state, -state @ value @ state


class Line(gymnasium.Env):
    """A point on [-1, 1] that actions push by up to 0.2; the reward is its distance from 0."""

    def __init__(self, discrete=False, goal=None, limit=20):
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-1.0, 1.0, (1,))
        self.discrete, self.goal, self.limit = discrete, goal, limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1), 0
        return np.float32([self.place]), {}

    def step(self, action):
        push = float(action) - 1.0 if self.discrete else float(action[0])
        self.place = float(np.clip(self.place + 0.2 * push, -1, 1))
        self.time += 1
        ended = self.goal is not None and self.place > self.goal
        return np.float32([self.place]), -abs(self.place), ended, self.time >= self.limit, {}


class Diverging(LinearModel):
    """Beyond 1 its observations and rewards explode; ``far`` says whether they do everywhere."""

    def __init__(self, far=1.0):
        super().__init__(low=-1.0, high=1.0)
        self.far = far

    def _predict(self, states, actions):
        targets = super()._predict(states, actions)
        targets[np.abs(states[:, 0]) >= self.far] = np.nan
        return targets
