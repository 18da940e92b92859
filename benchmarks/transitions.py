"""Random-policy transitions of a MuJoCo environment, which `losse bench core` learns.

Inputs are [observation, action], targets [next observation - observation, reward].  For Hopper
that is 14 inputs and 12 outputs.  The rows are made once per environment version, seed and length,
and kept in the user's cache folder.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from losse.scaling import LIMIT, standard
from losse.storage.atomic import replacing
from losse.storage.cache import cache_folder


class Transitions(NamedTuple):
    """Rows in the order in which they happened."""

    inputs: NDArray[Any]
    targets: NDArray[Any]


def collect(env_id: str, n: int, seed: int = 0) -> Transitions:
    """Step the environment n times with uniformly random actions."""
    from benchmarks.recording import random_policy

    rows = random_policy(env_id, n, seed)
    return Transitions(rows.X, rows.Y)


def load(env_id: str, n: int, seed: int = 0) -> Transitions:
    """The first n transitions of this environment and seed, from the cache if it has them."""
    path = cache_folder() / f"{env_id}-{simulator()}-seed{seed}-{n}.npz"
    return Transitions(**cached(path, lambda: collect(env_id, n, seed)._asdict()))


def standardise(rows: Transitions, reference: int) -> Transitions:
    """Unit scale by the first ``reference`` rows; inputs clipped as the encoder expects them."""
    inputs, targets = (standard(part[:reference]) for part in rows)
    return Transitions(inputs.apply(rows.inputs, LIMIT), targets.apply(rows.targets))


def simulator() -> str:
    """Versions of what makes transitions: others make other ones."""
    return f"mujoco{version('mujoco')}-gymnasium{version('gymnasium')}"


def cached(path: Path, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Arrays from a file, which is made if there is none yet."""
    if not path.exists():
        buffer = io.BytesIO()
        np.savez(buffer, **make())
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as write:
            write(buffer.getvalue())
    with np.load(path) as stored:
        return dict(stored)
