"""Small files that ask for large models are refused before anything is allocated or compiled."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from gymnasium import spaces

from losse.storage.archive import ArchiveError
from losse.world import LosseWorldModel, NeuralWorldModel
from losse.world.neural.memories import MEMORIES
from losse.world.neural.network import _new_weights
from tests.world.worlds import model_of, put, rewritten

BOX = spaces.Box(-1, 1, (2,))
LITTLE = 4 << 20
"""Bytes, some hundred times those of the files."""


@contextmanager
def little_memory():
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


def several(space, *states):
    """Values and arrays of another space in the place of one."""

    def change(header, arrays):
        for name in [name for name in (*header, *arrays) if name.startswith(f"{space}.")]:
            (header if name in header else arrays).pop(name)
        for state in states:
            for name, value in state.items():
                to = arrays if isinstance(value, np.ndarray) else header
                to[f"{space}.{name}"] = value

    return change


def choices(space, n, start=0):
    return several(space, {"type": "Discrete", "n": n, "start": start, "dtype": "int64"})


def multi_discrete(nvec):
    nvec = np.array(nvec, np.int64)
    state = {"type": "MultiDiscrete", "dtype": "int64", "shape": list(nvec.shape), "nvec": nvec}
    return state | {"start": np.zeros(nvec.shape, np.int64)}


def chain(depth):
    """A tuple within a tuple within ..."""
    state = {"type": "MultiBinary", "n": 1}
    for _ in range(depth):
        state = {f"part0.{key}": value for key, value in state.items()}
        state |= {"type": "Tuple", "keys": [0]}
    return state


SPACES = [
    choices("observation_space", 2**24),
    choices("observation_space", 2**62),
    choices("observation_space", 10**30),
    choices("action_space", 2**62),
    choices("action_space", 3, start=2**63),
    choices("action_space", 3, start=-(2**70)),
    choices("action_space", 3, start=1e300),
    choices("action_space", -3),
    choices("action_space", True),
    several("observation_space", {"type": "MultiBinary", "n": 2**24}),
    several("observation_space", {"type": "MultiBinary", "n": [2**30] * 20}),
    several("observation_space", {"type": "MultiBinary", "n": -1}),
    several("observation_space", {"type": "MultiBinary", "n": "all"}),
    several("observation_space", {"type": "MultiBinary", "n": None}),
    several("observation_space", multi_discrete([2**24])),
    several("observation_space", multi_discrete([2**62] * 5)),
    several("observation_space", multi_discrete([0, -1])),
    several("observation_space", multi_discrete([2]) | {"shape": [2**40]}),
    several("observation_space", multi_discrete([2]) | {"dtype": "float64"}),
    several("observation_space", {"type": "Tuple", "keys": []}),
    several("observation_space", {"type": "Tuple", "keys": 2**62}),
    several("observation_space", {"type": "Tuple", "keys": list(range(10_000))}),
    several("observation_space", {"type": "Dict", "keys": ["a", "a"]}),
    several("observation_space", {"type": "Dict", "keys": [["a"]]}),
    several("observation_space", chain(400)),
    several("observation_space", {"type": "Graph"}),
]


@pytest.fixture(scope="module")
def neural(tmp_path_factory):
    """Files of networks that have learned nothing."""
    folder = tmp_path_factory.mktemp("neural")
    for memory in MEMORIES:
        model = NeuralWorldModel(BOX, spaces.Discrete(3), memory=memory, hidden=(2, 2))
        model.save(folder / memory, progress=False)
    return folder


@pytest.mark.parametrize("change", SPACES)
def test_spaces_larger_than_their_file(change, neural, tmp_path):
    model_of(BOX, spaces.Discrete(3), per_action=False).save(tmp_path / "losse", progress=False)
    online = tmp_path / "online"
    online.write_bytes((neural / "online").read_bytes())
    for kind, path in ((LosseWorldModel, tmp_path / "losse"), (NeuralWorldModel, online)):
        rewritten(path, change, kind=kind)
        with little_memory(), pytest.raises(ArchiveError, match="is not a valid model"):
            kind.load(path, progress=False)


@pytest.mark.parametrize("per_action", [True, False])
def test_many_actions_take_nothing_before_they_are_taken(per_action, tmp_path):
    path = tmp_path / "model"
    with little_memory():
        model = model_of(BOX, spaces.Discrete(2**24), per_action=per_action)
        model.save(path, progress=False)
        loaded = LosseWorldModel.load(path, progress=False)
    if not per_action:
        return
    loaded.update([[0.5, 0.5]], [2**24 - 1], [1.0], [[0.6, 0.5]], [False])
    assert loaded.step([[0.5, 0.5]], [2**24 - 1])[1] > 0.9


def layers(*hidden):
    return put("hidden", list(hidden))


@pytest.mark.parametrize(
    ("memory", "change"),
    [
        ("full-replay", layers(*[400] * 60)),
        ("full-replay", layers(*[2] * 60)),
        ("full-replay", layers(*[1] * 1_000)),
        ("si", layers(2**16, 2**16)),
        ("si", layers(2)),
        ("si", layers()),
        ("si", layers(0)),
        ("online", layers(2**40)),
        ("online", put("hidden", 2)),
        ("online", put("learner.memory.count", 2**40)),
        ("full-replay", put("learner.memory.count", 2**40)),
        ("full-replay", put("learner.memory.count", 2**63)),
        ("coreset", put("learner.memory.n_seen", 2**39)),
        ("full-replay", put("batch_size", 2**40)),
        ("full-replay", put("batch_size", 0)),
        ("coreset", put("coreset_size", 2**62)),
        ("full-replay", put("learner.n_updates", 2**40)),
        ("full-replay", put("seed", 2**31)),
        ("full-replay", put("n_transitions", 2**70)),
        ("full-replay", put("units.count", 2**40)),
        ("full-replay", put("memory", "elephant")),
    ],
)
def test_networks_larger_than_their_file(memory, change, neural, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((neural / memory).read_bytes())
    rewritten(path, change, kind=NeuralWorldModel)
    compiled = _new_weights._cache_size()
    with little_memory(), pytest.raises(ArchiveError, match="is not a valid model"):
        NeuralWorldModel.load(path, progress=False)
    assert _new_weights._cache_size() == compiled


def test_a_large_coreset_takes_no_room_before_it_is_filled(neural, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((neural / "coreset").read_bytes())
    rewritten(path, put("coreset_size", 2**28), kind=NeuralWorldModel)
    compiled = _new_weights._cache_size()
    with little_memory():
        model = NeuralWorldModel.load(path, progress=False)
    assert model.coreset_size == 2**28
    assert _new_weights._cache_size() == compiled  # nor is anything compiled
