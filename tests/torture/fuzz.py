"""Damaged and forged checkpoint files: each is refused, or gives a model that works.

A file is changed by bits, by cuts, or under valid checksums by its header, its arrays and their
shapes. Loading then raises `ArchiveError`, quickly and in little memory, or returns a model that
can be used. That model may know nonsense, and may say so by a `ValueError`.
"""

import copy
import json
import signal
import time
import tracemalloc
import warnings
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
from gymnasium.spaces import Box, Discrete

from losse import FTLRegressor, LosseEncoder
from losse.storage.archive import ArchiveError
from losse.world import LosseWorldModel
from tests.ftl import test_faults as faults
from tests.storage.forgery import forge, put_together, take_apart

LONGEST = 20.0
"""Seconds for a file."""
WORDS = [b"", b"0", b"9", b"-", b".", b"e", b'"', b"[", b"{", b"null", b"true", b"1e308"]
VALUES = (0.0, -1.0, 1e-300, 1e15, 1e300, -1e300, np.nan, np.inf)


def files(folder):
    """Name, content, class and use of a file of every kind."""
    for name, make in faults.MODELS.items():
        if name not in faults.LARGE:  # they are small models that count as large
            model = make()
            yield name, faults.saved(model, folder)[1], FTLRegressor, faults.use
    for name, per_action in (("world", True), ("one for all", False)):
        regressor = FTLRegressor(LosseEncoder(3, 4), ridge=1e-4)
        model = LosseWorldModel(
            Box(-3, 3, (2,)), Discrete(2), per_action=per_action, regressor=regressor
        )
        obs = np.linspace(-2, 2, 80).reshape(40, 2)
        model.update(obs, np.arange(40) % 2, np.ones(40), 0.9 * obs, np.zeros(40, bool))
        model.save(folder / name, progress=False)
        yield name, (folder / name).read_bytes(), LosseWorldModel, use_world
    if find_spec("jax"):
        yield from neural_files(folder)
    if find_spec("stable_baselines3"):
        agent = Plans.agent()
        agent.learn(40)
        agent.save(folder / "plans")
        yield "plans", (folder / "plans").read_bytes(), Plans, Plans.use


def neural_files(folder):
    """Files of networks, with and without a memory."""
    from losse.world import NeuralWorldModel

    obs = np.linspace(-2, 2, 80).reshape(40, 2)
    for memory in ("online", "full-replay"):
        model = NeuralWorldModel(Box(-3, 3, (2,)), Discrete(2), memory=memory, hidden=(4,))
        model.update(obs, np.arange(40) % 2, np.ones(40), 0.9 * obs, np.zeros(40, bool))
        name = f"neural {memory}"
        model.save(folder / name, progress=False)
        yield name, (folder / name).read_bytes(), NeuralWorldModel, use_world


class Plans:
    """A planning agent as a kind of file: its environment is not part of it."""

    @staticmethod
    def agent():
        from losse.planning import PlanningAgent

        options = {"horizon": 2, "width": 3}
        regressor = FTLRegressor(LosseEncoder(3, 4), ridge=1e-4)
        return PlanningAgent(
            "CartPole-v1", planner="beam", planner_options=options,
            model_options={"regressor": regressor}, learning_starts=30, seed=0,
        )  # fmt: skip

    @staticmethod
    def load(path, progress):
        from losse.planning import PlanningAgent

        return PlanningAgent.load(path, "CartPole-v1")

    @staticmethod
    def use(agent):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agent.predict(np.zeros(4, dtype=np.float32))


def use_world(model):
    """What a world model does."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        obs = model.observation_space.sample()[None]
        action = np.array([model.action_space.sample()])
        next_obs, reward, ended = model.step(obs, action)
        assert model.observation_space.contains(next_obs[0]) or np.isnan(next_obs).any()
        assert reward.shape == ended.shape == (1,)
        model.update(obs, action, [1.0], obs, [False])


def spoilt(content, rng):
    """A file like this one, changed in some way, and the name of the way."""
    ways = (flipped, cut, edited_text, edited_header, edited_array, moved_arrays)
    way = ways[rng.integers(len(ways))]
    return way.__name__, way(content, rng)


def flipped(content, rng):
    data = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(data)


def cut(content, rng):
    at, length = rng.integers(len(content)), rng.integers(1, 5000)
    ways = (
        content[:at],
        content[at:],
        content + bytes(int(length)),
        content[:at] + bytes(int(length)) + content[at:],
        content[:at] + content[at + length :],
        b"",
    )
    return ways[rng.integers(len(ways))]


def edited_text(content, rng):
    """Letters of the head."""
    head, arrays = take_apart(content)
    text = bytearray(json.dumps(head).encode())
    for _ in range(rng.integers(1, 4)):
        at = rng.integers(len(text))
        text[at : at + rng.integers(3)] = WORDS[rng.integers(len(WORDS))]
    return forge(bytes(text), [array.tobytes() for array in arrays.values()])


def edited_header(content, rng):
    """Values of the header."""
    head, arrays = take_apart(content)
    header = head["header"]
    for _ in range(rng.integers(1, 3)):
        places = [place for place in faults.leaves(header) if place]
        place = places[rng.integers(len(places))]
        value = faults.NONSENSE[rng.integers(len(faults.NONSENSE))]
        header = faults.changed(header, place, copy.deepcopy(value))
    return put_together({**head, "header": header}, arrays)


def edited_array(content, rng):
    """Values, types and shapes of arrays."""
    head, arrays = take_apart(content)
    names = [name for name, array in arrays.items() if array.size]
    name = names[rng.integers(len(names))]
    array = arrays[name]
    kind = rng.integers(4)
    if kind == 0:
        raw = bytearray(array.tobytes())
        for _ in range(rng.integers(1, 9)):
            raw[rng.integers(len(raw))] = rng.integers(256)
        array = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)
    elif kind == 1:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.copy()
            array.flat[rng.integers(array.size)] = np.array(
                VALUES[rng.integers(len(VALUES))]
            ).astype(array.dtype)
    elif kind == 2:
        dtypes = ("float16", "float32", "int64", "uint8", "complex128", "bool")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(dtypes[rng.integers(len(dtypes))])
    else:
        flat = array.ravel()
        shapes = (flat[:-1], array[..., None], flat, flat[:0], array.T, array[None])
        array = np.ascontiguousarray(shapes[rng.integers(len(shapes))])
    return put_together(head, arrays | {name: array})


def moved_arrays(content, rng):
    """Arrays that are missing, doubled or exchanged."""
    head, arrays = take_apart(content)
    one, other = (list(arrays)[rng.integers(len(arrays))] for _ in range(2))
    kind = rng.integers(3)
    if kind == 0:
        del arrays[one]
    elif kind == 1:
        arrays[f"{one}2"] = arrays[one]
    else:
        arrays[one], arrays[other] = arrays[other], arrays[one]
    return put_together(head, arrays)


@contextmanager
def stopped_after(seconds):
    """A `TimeoutError` for what takes longer."""

    def stop(*_):
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(path, data, kind, use):
    """Load and use a file: ``"refused"``, ``"used"`` or ``"said"``; anything else is an error."""
    path.write_bytes(data)
    began = time.monotonic()
    model = refusal = None
    with stopped_after(LONGEST):
        tracemalloc.start()
        try:
            model = kind.load(path, progress=False)
        except ArchiveError as error:
            refusal = str(error)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 20 * len(data) + (8 << 20), f"took {peak} bytes"
        if refusal is not None:
            assert path.name in refusal
            assert len(refusal) < 2000
            return "refused"
        try:
            use(model)
        except (ValueError, MemoryError):
            return "said"
        finally:
            assert time.monotonic() - began < LONGEST
    return "used"


def fuzz(folder, seed, count):
    """Try so many changes of every file; how often they ended in which way."""
    outcomes = {"refused": 0, "used": 0, "said": 0}
    for name, content, kind, use in files(folder):
        rng = np.random.default_rng([seed, *name.encode()])
        for k in range(count):
            way, data = spoilt(content, rng)
            try:
                outcomes[attempt(folder / "spoilt", data, kind, use)] += 1
            except BaseException as error:
                error.add_note(f"file {name!r}, seed {seed}, change {k} ({way})")
                raise
    return outcomes
