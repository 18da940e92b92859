"""An environment that writes down what happens, and blocks that take a while to read."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from losse import FTLRegressor, LosseEncoder
from losse.world import LosseWorldModel


def spaces():
    """Spaces of the walk, with their own random numbers."""
    return Box(-1.0, 1.0, (2,), np.float64), Discrete(2)


class Walk(gymnasium.Env):
    """A walk in a square. Each start has a file, named after its seed, with all transitions."""

    def __init__(self, folder, seconds=0.0, bad_seeds=(), deadly_seeds=()):
        self.observation_space, self.action_space = spaces()
        self.deadly_seeds = deadly_seeds
        self.folder, self.seconds, self.bad_seeds = Path(folder), seconds, bad_seeds

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed in self.deadly_seeds:
            os._exit(1)
        if seed is not None:
            self.seed = seed
            self.log = open(self.folder / f"{seed}.jsonl", "a", buffering=1)  # noqa: SIM115
        self.place = self.np_random.uniform(-1, 1, 2)
        return self.place, {}

    def step(self, action):
        time.sleep(self.seconds)
        if self.seed in self.bad_seeds:
            raise ArithmeticError("the robot fell over")
        before = self.place
        self.place = np.clip(before + 0.1 * self.np_random.normal(size=2) + 0.05 * action, -1, 1)
        reward, terminated = float(self.place.sum()), bool(self.place[0] > 0.9)
        row = (before.tolist(), int(action), reward, self.place.tolist(), terminated)
        self.log.write(json.dumps(row) + "\n")
        return self.place, reward, terminated, False, {}


def new_model():
    """An empty world model of the walk, whose weights do not depend on the order of rows."""
    regressor = FTLRegressor(LosseEncoder(5, 4), solver="dense", ridge=1e-3)
    return LosseWorldModel(*spaces(), regressor=regressor)


class SlowTable(Mapping):
    """A table whose columns take some time to read."""

    def __init__(self, columns, seconds):
        self.columns, self.seconds = columns, seconds

    def __getitem__(self, name):
        time.sleep(self.seconds / len(self.columns))
        return self.columns[name]

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return len(self.columns)


def greedy(obs, model):
    """An action that uses the world model."""
    _, rewards, _ = model.step(np.stack([obs, obs]), np.arange(2))
    return int(np.argmax(rewards))
