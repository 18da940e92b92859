"""Streams of transitions from the cache, or made anew from their seed and kept there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from benchmarks.accuracy.streams.stream import Stream, in_sequence
from benchmarks.transitions import cached, simulator
from losse.storage.cache import cache_folder
from losse.typing import Array

if TYPE_CHECKING:
    from benchmarks.recording import Rows

Kind = Literal["random", "changing", "tasks", "tables"]
"""A random policy, an agent that learns, the latter's rows as a sequence of tasks, or tables."""

TEST_ROWS = 10_000
TEST_SEED = 10_000  # added to a stream's seed
HELD_OUT = 6  # of an agent's episodes, one in so many is not learned but tested on


def load(kind: Kind, environment: str, n: int, seed: int, folder: Path | None = None) -> Stream:
    """The stream of n transitions of this kind, environment and seed."""
    parts = [_rows(part) for part in _parts(kind, environment, n, seed, folder)]
    if kind == "random":
        return _stream(*parts)
    stream = hold_out(parts[0], n)
    return in_sequence(stream) if kind == "tasks" else stream


def is_cached(kind: Kind, environment: str, n: int, seed: int, folder: Path | None = None) -> bool:
    """Whether the stream does not have to be made anew."""
    return all(part.path.exists() for part in _parts(kind, environment, n, seed, folder))


def parts(environment: str) -> dict[str, Callable[[Array, Array], Array]]:
    """State, reward and termination, from inputs and targets, or predictions, of transitions.

    Whether an episode ends, 0 or 1, is no target: the rule of the environment says it of the next
    observation, where that rule is known and ever ends an episode.

    >>> X, Y = np.array([[0.0, 0.1, 0.0, 0.0, 1.0]]), np.array([[0.0, 0.2, 0.0, 0.0, 1.0]])
    >>> {name: part(X, Y).tolist() for name, part in parts("InvertedPendulum-v5").items()}
    {'state': [[0.0, 0.2, 0.0, 0.0]], 'reward': [[1.0]], 'termination': [[1.0]]}
    """
    from losse.envs.terminations import TERMINATIONS

    found = {"state": lambda X, Y: Y[:, :-1], "reward": lambda X, Y: Y[:, -1:]}
    rule = TERMINATIONS.get(environment)
    if callable(rule):

        def ends(X: Array, Y: Array) -> Array:
            change, d = Y[:, :-1], Y.shape[1] - 1
            return rule(X[:, :d], X[:, d:], X[:, :d] + change).astype(np.float64)[:, None]

        found["termination"] = ends
    return found


def hold_out(rows: Rows, n: int) -> Stream:
    """Split episodes into learned and tested ones; of the learned, take n rows."""
    tested = rows.episode % HELD_OUT == HELD_OUT - 1
    learned = np.flatnonzero(~tested)
    if len(learned) < n:
        raise ValueError(f"only {len(learned)} rows are left to learn, asked for {n}")
    return _stream(rows.take(learned[:n]), rows.take(tested))


class _Part(NamedTuple):
    """The steps of an agent in an environment, and the file that keeps them."""

    path: Path
    policy: str
    environment: str
    n: int
    seed: int


def _parts(kind: Kind, environment: str, n: int, seed: int, folder: Path | None) -> list[_Part]:
    def part(policy: str, n: int, seed: int) -> _Part:
        name = f"{policy}-{environment}-{simulator()}-seed{seed}-{n}.npz"
        path = (folder or cache_folder()) / "accuracy" / name
        return _Part(path, policy, environment, n, seed)

    if kind == "random":
        return [part("random", n, seed), part("random", TEST_ROWS, seed + TEST_SEED)]
    # A sixth of the steps is held out, and a little more where such episodes are long.
    return [part("changing", n * 5 // 4, seed)]


def _rows(part: _Part) -> Rows:
    from benchmarks import recording  # tables do without Gymnasium

    act = recording.random_policy if part.policy == "random" else recording.changing_policy
    made = cached(part.path, lambda: act(part.environment, part.n, part.seed)._asdict())
    return recording.Rows(**made)


def _stream(train: Rows, test: Rows) -> Stream:
    one = (np.zeros(len(rows.X), np.int64) for rows in (train, test))
    return Stream(train.X, train.Y, test.X, test.Y, *one)
