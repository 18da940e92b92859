"""Agents for the tests: small networks, short runs, all libraries."""

import importlib

import gymnasium
import numpy as np
from gymnasium import spaces

from losse import FTLRegressor, LosseEncoder
from losse.dyna import make_dyna

DISCRETE = ("sbx.DQN", "stable_baselines3.DQN", "sb3_contrib.QRDQN")
CONTINUOUS = (
    "sbx.SAC",
    "sbx.TD3",
    "sbx.TQC",
    "sbx.CrossQ",
    "stable_baselines3.SAC",
    "stable_baselines3.TD3",
    "stable_baselines3.DDPG",
    "sb3_contrib.TQC",
    "sb3_contrib.CrossQ",
)


class Line(gymnasium.Env):
    """A walk on a line from 0 to 10, where the unit of actions is not the agent's.

    Steps to the right (discrete: action 1; continuous: the action, from 0 to 4, less 1) earn their
    length. Episodes end at 10; `limit` cuts them off.
    """

    def __init__(self, continuous=False, limit=20):
        self.observation_space = spaces.Box(0.0, 10.0, (1,), np.float32)
        self.action_space = (
            spaces.Box(0.0, 4.0, (1,), np.float32) if continuous else spaces.Discrete(2)
        )
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.float32(self.np_random.uniform(0, 1)), 0
        return self._observation(), {}

    def step(self, action):
        length = float(action[0]) - 1 if np.ndim(action) else (2.0 if action == 1 else -1.0)
        before = self.place
        self.place = np.float32(np.clip(self.place + length, 0, 10))
        self.steps += 1
        gained = float(self.place - before)
        ended, cut = bool(self.place >= 10), self.steps >= self.limit
        return self._observation(), gained, ended, cut and not ended, {}

    def _observation(self):
        return np.array([self.place], dtype=np.float32)


def agent_class(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def small(name="stable_baselines3.DQN", env=None, **options):
    """A small agent of any library, on the line unless told otherwise."""
    continuous = name in CONTINUOUS
    defaults = {
        "planning_steps": 2,
        "update_every": 10,
        "learning_starts": 20,
        "batch_size": 8,
        "buffer_size": 1000,
        "policy_kwargs": {"net_arch": [8, 8]},
        "seed": 0,
    }
    if options.get("world_model", "losse") == "losse":
        regressor = FTLRegressor(LosseEncoder(5, n_bins=5, grid_dim=2), ridge=1e-5)
        defaults["model_options"] = {"regressor": regressor}
    return make_dyna(agent_class(name), env or Line(continuous), **defaults | options)
