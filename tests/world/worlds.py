"""Small worlds and models, and ways to compare models."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from losse import FTLRegressor, LosseEncoder
from losse.storage.archive import open_archive, write_archive
from losse.world import LosseWorldModel

BOUNDED = Box(-1.0, 1.0, (2,), dtype=np.float64)
MIXED = Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
FOUR = Discrete(4)
PUSH = Box(-2.0, 2.0, (1,), dtype=np.float64)
MOVES = 0.1 * np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])


def small(solver="sparse", ridge=1e-6, **parameters):
    return FTLRegressor(LosseEncoder(6, 5, 2), solver=solver, ridge=ridge, **parameters)


def model_of(space=BOUNDED, actions=FOUR, **options):
    return LosseWorldModel(space, actions, **({"regressor": small()} | options))


def transitions(n, actions=FOUR, seed=0):
    """A linear system with a wall at the right, where episodes end."""
    rng = np.random.default_rng(seed)
    obs = rng.uniform(-0.9, 0.9, (n, 2))
    if isinstance(actions, Discrete):
        chosen = rng.integers(0, actions.n, n) + actions.start
        move = MOVES[chosen - actions.start]
    else:
        chosen = rng.uniform(-2, 2, (n, 1))
        move = 0.1 * chosen * [1.0, -0.5]
    next_obs = np.clip(0.9 * obs + move, -1, 1)
    return obs, chosen, obs @ [1.0, -2.0], next_obs, next_obs[:, 0] > 0.7


def some(data, rows):
    return tuple(part[rows] for part in data)


def assert_identical(one, other, but=()):
    """Bit for bit, but for parts whose name contains one of some words."""
    left, right = one.state(), other.state()
    assert left.keys() == right.keys()
    for name in [name for name in left if not any(word in name for word in but)]:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def rewritten(path, *changes, kind=LosseWorldModel):
    """The same archive with changed content and right checksums."""
    with open_archive(path, kind.kind, kind.version) as archive:
        header = dict(archive.header)
        arrays = {name: archive.read(name) for name in archive.shapes}
    for change in changes:
        change(header, arrays)
    write_archive(path, kind.kind, kind.version, header, arrays)


def put(name, value):
    """A change of one value or array of an archive."""
    return lambda header, arrays: (header if name in header else arrays).update({name: value})
