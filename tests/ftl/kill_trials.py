"""Trains and saves models in child processes, kills these, and looks at the files they leave.

Run as ``python -m tests.ftl.kill_trials folder kills`` in a process of its own: it forks, which
only a process with a single thread can do safely. Prints a summary as JSON.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from losse import FTLRegressor, LosseEncoder
from tests.ftl.reference import stream

BATCH = 5
SOLVERS = ("sparse", "exact", "dense")
ROUNDS = 4.0
"""Children live for up to this many rounds of learning and saving."""
X, Y = stream(1000)


def rows(start):
    """The batch that follows ``start`` samples; the stream begins again when it ends."""
    return slice(start % len(X), start % len(X) + BATCH)


def learn_next(model):
    batch = rows(model.n_samples_seen_)
    model.partial_fit(X[batch], Y[batch])


def train_for_ever(path, ready):
    model = FTLRegressor.load(path)
    os.write(ready, b"!")
    while True:
        learn_next(model)
        model.save(path)


def kill_one(path, seconds):
    """Let a child train for a while; it must not end by itself."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            train_for_ever(path, write)
        finally:
            os._exit(1)
    os.close(write)
    os.read(read, 1)
    os.close(read)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself, with status {status}"


def time_of_a_round(path):
    """Seconds on this machine, with its disk."""
    model = FTLRegressor.load(path)
    start = time.perf_counter()
    for _ in range(5):
        learn_next(model)
        model.save(path.with_suffix(".timing"))
    return (time.perf_counter() - start) / 5


def run(folder, solver, kills, rng):
    """Kill children one after the other, each going on from what the last one left."""
    path = folder / f"{solver}.losse"
    expected = FTLRegressor(LosseEncoder(5, 5, 2, scaling=None), solver=solver, ridge=1e-5)
    expected.partial_fit(X[rows(0)], Y[rows(0)])
    expected.save(path)
    longest = ROUNDS * time_of_a_round(path)
    within_save = advanced = 0
    left = set()
    for seconds in rng.uniform(0, longest, kills):
        kill_one(path, seconds)
        left, before = set(folder.glob(".*.partial")), left
        within_save += len(left - before)
        found = FTLRegressor.load(path)
        assert found.n_samples_seen_ % BATCH == 0
        assert found.n_samples_seen_ >= expected.n_samples_seen_
        advanced += found.n_samples_seen_ > expected.n_samples_seen_
        while expected.n_samples_seen_ < found.n_samples_seen_:
            learn_next(expected)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    expected.save(path)
    assert list(folder.glob(".*")) == []
    return {
        "kills": kills,
        "within_save": within_save,
        "advanced": advanced,
        "samples": expected.n_samples_seen_,
    }


def main():
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    tasks = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
    # pyarrow, if pandas finds it, frees memory in a thread of its own, which holds no lock of ours.
    others = [task for task in tasks[1:] if task != "jemalloc_bg_thd"]
    assert not others, f"more than one thread, forking is unsafe: {others}"
    rng = np.random.default_rng(0)
    print(json.dumps({solver: run(folder, solver, kills, rng) for solver in SOLVERS}))


if __name__ == "__main__":
    main()
