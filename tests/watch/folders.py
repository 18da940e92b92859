"""Run folders for the tests of the page: usual ones, large ones and broken ones."""

import json

import numpy as np

from losse import FTLRegressor, LosseEncoder
from losse.runs.journal import LIVE, PROBE, Journal, SweepJournal
from losse.runs.probe import Probe
from losse.runs.record import Record
from losse.runs.store import Store
from losse.world import LosseWorldModel, Transitions


def record(seed=0, method="losse", points=20, **changes):
    """A record of a training whose return rises."""
    steps = np.arange(1, points + 1) * 100
    noise = np.random.default_rng(seed).normal(size=points)
    returns = 100 * (1 - np.exp(-steps / steps[-1] * 3)) + 5 * noise
    errors = 0.5 * np.exp(-steps / steps[-1] * 3) + 0.01
    fields = {
        "experiment": "train",
        "method": method,
        "setting": "CartPole-v1",
        "seed": seed,
        "score": float(returns.mean()),
        "curve": list(zip(steps.tolist(), returns.tolist(), strict=True)),
        "seconds": 12.5,
        "settings": {"env": "CartPole-v1", "seed": seed},
        "details": {
            "model_error": list(zip(steps.tolist(), errors.tolist(), strict=True)),
            "update_seconds": 2.0,
            "imagination_seconds": 1.0,
        },
    }
    return Record(**fields | changes)


def about(seed=0, method="losse"):
    return {
        "experiment": "train",
        "method": method,
        "setting": "CartPole-v1",
        "seed": seed,
        "of": 2000,
    }


def transitions(n, seed=0):
    """Steps of a point that turns in the plane, in one episode."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(2, size=n)
    obs = np.empty((n + 1, 2), dtype=np.float32)
    obs[0] = 0.5
    for i, action in enumerate(actions):
        turn = 0.3 if action else -0.2
        x, y = obs[i] - 0.5
        moved = [x * np.cos(turn) - y * np.sin(turn) + 0.02, x * np.sin(turn) + y * np.cos(turn)]
        obs[i + 1] = np.clip(np.array(moved) + 0.5, 0, 1)
    return Transitions(obs[:-1], actions, np.ones(n), obs[1:], np.zeros(n, dtype=bool))


def probe_of(n=200):
    """What a probe finds in a small world model."""
    from gymnasium.spaces import Box, Discrete

    small = FTLRegressor(LosseEncoder(n_grids=5, n_bins=6))
    model = LosseWorldModel(Box(0, 1, (2,)), Discrete(2), regressor=small)
    probe = Probe(model)
    lived = transitions(n)
    for start in range(0, n, 25):
        part = lived.take(slice(start, start + 25))
        probe.follow(part)
        probe.see(part, start)
        model.update(*part)
        found = probe.look(start + 25)
    return found


def going_on(folder, seed=0, steps=1000, probe=None):
    """A journal of a run that has not ended; returns it to write on."""
    journal = Journal(folder / f"losse_seed{seed}", about(seed))
    journal.__enter__()
    tell(journal, steps, probe)
    return journal


def tell(journal, steps, probe=None):
    curve = [(step, step / 100) for step in range(100, steps + 1, 100)]
    reached = {
        "steps": steps,
        "curve": curve,
        "model_error": [(step, 10 / step) for step, _ in curve],
        "seconds": 10.0,
        "update_seconds": 2.0,
        "imagination_seconds": 0.5,
    }
    journal.write(reached)
    if probe is not None:
        journal.write_probe(probe)


def long_run(folder, points=1_000_000):
    """A record with very many points and one outlier, written without the detour of a store."""
    store = Store(folder)
    store.add([record(points=2)])
    fields = json.loads(store.path().read_text())
    values = np.round(np.random.default_rng(0).normal(size=points), 3)
    values[points // 3] = 50.0
    fields["curve"] = list(zip(range(points), values.tolist(), strict=True))
    store.path().write_text(json.dumps(fields) + "\n")


class Silent:
    """A display that shows nothing."""

    def stage(self, *_):
        pass

    finished = failed = stage


def failing_sweep(folder):
    """A sweep of four runs, one of which has failed; it goes on."""
    from losse.runs.experiment import Run
    from losse.runs.runner import Job
    from losse.runs.workers import Failure

    jobs = [Job((Run("toy", "losse", "a", seed),)) for seed in range(4)]
    journal = SweepJournal(folder, "toy", Silent())
    journal.__enter__()
    journal.stage("final", jobs, 0)
    journal.finished(jobs[0], [])
    journal.failed(jobs[1], Failure("ValueError: the rate is negative", "Traceback: line 7"))
    return journal


def everything(root):
    """A folder of each kind that the page has to show."""
    few = Store(root / "few")
    few.add([record(seed, method) for method in ("losse", "model-free") for seed in range(3)])
    going_on(root / "few", seed=7, probe=probe_of())
    long_run(root / "long")
    methods = ("losse", "online", "full-replay", "oracle")
    Store(root / "hundred").add([record(seed, m) for m in methods for seed in range(25)])
    Store(root / "broken").add([record()])
    with (root / "broken" / "runs.jsonl").open("a") as file:
        file.write("{not json\n" + json.dumps({"experiment": "x"}) + "\n")
    for name in ("bad_journal", "bad_probe"):
        (root / "broken" / name).mkdir()
    (root / "broken" / "bad_journal" / LIVE).write_text("[]")
    going_on(root / "broken", seed=3)
    (root / "broken" / "losse_seed3" / PROBE).write_text('{"format": 1, "sample":')
    failing_sweep(root / "sweep")
    return root
