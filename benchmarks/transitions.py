"""Which data does the benchmark learn?  Random-policy transitions of a MuJoCo environment.

Inputs are [observation, action], targets [next observation - observation, reward].  The next
observation is the true one also where an episode ends.  For Hopper that is 14 inputs and 12
outputs.  The rows are made once per environment version, seed and length, and kept in the user's
cache folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLIP = 3.0  # the encoder expects inputs within about [-3, 3]


class Transitions(NamedTuple):
    """Rows in the order in which they happened."""

    inputs: NDArray[np.floating]
    targets: NDArray[np.floating]


def cache_folder() -> Path:
    """The user's cache folder for this package, by the platform's convention."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "losse"


def collect(env_id: str, n: int, seed: int = 0) -> Transitions:
    """Step the environment n times with uniformly random actions."""
    import gymnasium

    # MuJoCo leaves its log of warnings in the working directory.
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        env = gymnasium.make(env_id)
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    inputs, targets = [], []
    for _ in range(n):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        inputs.append(np.concatenate([observation, action]))
        targets.append(np.concatenate([following - observation, [reward]]))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    env.close()
    return Transitions(np.array(inputs, np.float64), np.array(targets, np.float64))


def load(env_id: str, n: int, seed: int = 0) -> Transitions:
    """The first n transitions of this environment and seed, from the cache if it has them."""
    simulator = f"mujoco{version('mujoco')}-gymnasium{version('gymnasium')}"
    path = cache_folder() / f"{env_id}-{simulator}-seed{seed}-{n}.npz"
    if path.exists():
        with np.load(path) as stored:
            return Transitions(stored["inputs"], stored["targets"])
    made = collect(env_id, n, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(unfinished, inputs=made.inputs, targets=made.targets)
    unfinished.replace(path)
    return made


def standardise(rows: Transitions, reference: int) -> Transitions:
    """Unit scale by the first ``reference`` rows; inputs clipped as the encoder expects them.

    A constant column is only centred.
    """

    def scaled(a: NDArray[np.floating]) -> NDArray[np.floating]:
        spread = a[:reference].std(axis=0)
        return (a - a[:reference].mean(axis=0)) / np.where(spread > 0, spread, 1.0)

    return Transitions(np.clip(scaled(rows.inputs), -CLIP, CLIP), scaled(rows.targets))
