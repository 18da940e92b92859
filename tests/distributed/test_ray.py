"""On a cluster of three nodes: what many learn is what one would have, whoever dies in between."""

import json
import os
import random
import re
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs losse[ray]")
pytest.importorskip("gymnasium")

import pyarrow
import ray
from ray.cluster_utils import Cluster

from losse import FTLRegressor, LosseEncoder
from losse.distributed import Fleet, fit
from losse.distributed.explorer import seed_of
from losse.runs.workers import Failure, run_jobs_on_ray
from losse.world.transitions import Transitions

from .walk import SlowTable, Walk, greedy, new_model

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (6000, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
ENCODER = LosseEncoder(5, 4, scaling=(-3, 3)).fit(X)
REGRESSOR = FTLRegressor(ENCODER, ridge=1e-4)
WHOLE = FTLRegressor(ENCODER, ridge=1e-4, solver="dense").fit(X, Y)
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster():
    before = signal.getsignal(signal.SIGTERM)
    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    cluster.others = []
    three_nodes(cluster)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    signal.signal(signal.SIGTERM, before)


def three_nodes(cluster):
    """Replace nodes that have died."""
    while len(cluster.others) < 2:
        cluster.others.append(cluster.add_node(**NODE))


def lose_node(cluster, seconds):
    """Let a node die in a while."""
    doomed = cluster.others.pop()
    dying = threading.Timer(seconds, cluster.remove_node, (doomed,), {"allow_graceful": False})
    dying.start()
    return dying


def blocks(n=12, rows=slice(None)):
    return [(X[rows][k::n], Y[rows][k::n]) for k in range(n)]


def slow_blocks(n=12, seconds=0.1):
    for k in range(n):
        part = X[k::n], Y[k::n]
        yield SlowTable({"x": part[0], "a": part[1][:, 0], "b": part[1][:, 1]}, seconds)


def assert_learned_once(model):
    assert model.n_samples_seen_ == len(X)
    np.testing.assert_allclose(model.predict(X), WHOLE.predict(X), rtol=1e-9, atol=1e-9)


def pids(title):
    """Processes of this cluster with such a title."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            name = (entry / "cmdline").read_text().partition("\0")[0]
            if name.startswith(f"ray::{title}") and os.getpid() in ancestors(int(entry.name)):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def ancestors(pid):
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


class Killer(threading.Thread):
    """Kills so many processes with a title, each after a random time."""

    def __init__(self, title, times, seed):
        super().__init__(daemon=True)
        self.title, self.times, self.random = title, times, random.Random(seed)
        self.killed, self.over = 0, False

    def run(self):
        while self.killed < self.times and not self.over:
            time.sleep(self.random.uniform(0.02, 0.15))
            victims = pids(self.title)
            if victims:
                os.kill(self.random.choice(victims), signal.SIGKILL)
                self.killed += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over = True
        self.join()


def assert_as_one_agent(fleet, folder):
    """The model is that of one agent which has seen all transitions that count, once each."""
    alone = new_model()
    for (worker, incarnation), n in fleet.ledger.committed.items():
        lines = (folder / f"{seed_of(0, worker, incarnation)}.jsonl").read_text().splitlines()
        alone.update(*Transitions.from_steps([json.loads(line) for line in lines[:n]]))
    model = fleet.world_model
    assert model.n_transitions == alone.n_transitions == sum(fleet.ledger.committed.values())
    obs, actions = RNG.uniform(-1, 1, (200, 2)), RNG.integers(0, 2, 200)
    for mine, theirs in zip(model.step(obs, actions), alone.step(obs, actions), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_jobs_of_an_experiment_fail_alone(cluster):
    jobs = ["6 * 7", "1 / 0", "__import__('os').environ['OPENBLAS_NUM_THREADS']",
            "__import__('os').kill(__import__('os').getpid(), 9)"]  # fmt: skip
    results = dict(run_jobs_on_ray(eval, jobs, workers=1))
    assert results[jobs[0]] == 42
    assert results[jobs[1]].reason == "ZeroDivisionError: division by zero"
    assert results[jobs[2]] == "1"
    assert isinstance(results[jobs[3]], Failure)
    assert results[jobs[3]].reason.startswith("its process ended")


def test_a_fleet_learns_what_one_agent_does_despite_a_death_and_a_fault(cluster, tmp_path):
    kwargs = {
        "folder": str(tmp_path),
        "seconds": 2e-3,
        "deadly_seeds": [seed_of(0, 0, 0)],
        "bad_seeds": [seed_of(0, 0, 2), seed_of(0, 1, 1)],
    }
    options = {"env_kwargs": kwargs, "policy": greedy, "cpus_per_worker": 0}
    with Fleet(Walk, new_model(), 1, steps_per_sync=50, **options) as fleet:
        assert fleet.sync().n_deaths == 1  # it dies while it starts, and is begun anew
        assert fleet.add_workers(1) == [1]
        assert fleet.wait() == 2
        fleet.run(200)
        assert fleet.world_model.settled  # so that sums travel, not rows
        with Killer("Explorer", times=1, seed=0) as killer:
            syncs = [fleet.sync()]
            while not (killer.killed and any(sync.n_deaths for sync in syncs)):
                syncs.append(fleet.sync())
        assert fleet.wait() == 2
        before = fleet.world_model.n_transitions
        fault = r"worker (\d): ArithmeticError: the robot fell over"
        with pytest.raises(ValueError, match=fault) as error:
            fleet.sync()
        assert fleet.world_model.n_transitions == before + 50  # those of the other one
        fleet.remove_workers([int(re.match(fault, str(error.value))[1])])
        fleet.sync()
        assert_as_one_agent(fleet, tmp_path)


def test_blocks_of_a_data_set_are_learned_where_they_are(cluster):
    class Dataset:
        """The part of a Ray Data dataset that is used."""

        def iter_internal_ref_bundles(self):
            for part in np.array_split(np.column_stack([X, Y]), 4):
                table = pyarrow.table(part.T.tolist(), names=["x0", "x1", "a", "b"])
                yield SimpleNamespace(block_refs=(ray.put(table),))

    assert_learned_once(fit(Dataset(), REGRESSOR, target=["a", "b"], n_workers=2, sample_rows=10))


def test_a_bad_block_is_named_and_what_cannot_be_learned_apart_is_refused(cluster):
    parts = blocks()
    parts[3] = np.full((5, 2), np.nan), Y[:5]
    with pytest.raises(ValueError, match="block 3: X contains NaN"):
        fit(parts, REGRESSOR, n_workers=2, sample_rows=1, blocks_per_task=4)
    with pytest.raises(ValueError, match=r"discount=0.9 weighs rows by their order"):
        fit(blocks(), FTLRegressor(ENCODER, discount=0.9))
    with pytest.raises(ValueError, match="dataset has no rows"):
        fit([], REGRESSOR)
    with pytest.raises(TypeError, match=r"dataset='a.parquet' is not a data set"):
        fit("a.parquet", REGRESSOR)
    with pytest.raises(ConnectionError, match="is not the cluster that this process is connected"):
        fit(blocks(), REGRESSOR, address="127.0.0.1:1")


def test_no_row_is_lost_or_learned_twice_when_workers_and_a_node_die(cluster):
    seen = []
    dying = lose_node(cluster, seconds=0.4)
    with Killer("learn", times=1, seed=0) as killer:
        model = fit(
            slow_blocks(), REGRESSOR, target=("a", "b"), n_workers=2, sample_rows=1,
            blocks_per_task=2, max_retries=10, progress=lambda *counts: seen.append(counts),
        )  # fmt: skip
    dying.join()
    assert killer.killed
    assert_learned_once(model)
    assert seen[0] == (1, 500)
    assert seen[-1] == (12, 6000)
    model.partial_fit(X[:10], Y[:10])  # it goes on


@pytest.mark.long
def test_no_block_is_lost_or_learned_twice_when_workers_die_at_random(cluster):
    three_nodes(cluster)
    for seed in range(4):
        with Killer("learn", times=2, seed=seed) as killer:
            model = fit(
                slow_blocks(), REGRESSOR, target=("a", "b"), n_workers=3, sample_rows=1,
                blocks_per_task=2, max_retries=10,
            )  # fmt: skip
        assert killer.killed
        assert_learned_once(model)


@pytest.mark.long
def test_a_worker_that_always_dies_is_named_with_its_blocks(cluster):
    with (
        Killer("learn", times=50, seed=0),
        pytest.raises(RuntimeError, match=r"block \d+ to block \d+: the worker died"),
    ):
        fit(slow_blocks(seconds=2), REGRESSOR, target=("a", "b"), n_workers=2, sample_rows=1,
            max_retries=0)  # fmt: skip


@pytest.mark.long
def test_a_node_that_dies_takes_no_rows_with_it(cluster):
    three_nodes(cluster)
    dying = lose_node(cluster, seconds=1.0)
    model = fit(
        slow_blocks(n=20, seconds=0.3), REGRESSOR, target=("a", "b"), n_workers=3, sample_rows=1,
        blocks_per_task=2, max_retries=10,
    )  # fmt: skip
    dying.join()
    assert_learned_once(model)


@pytest.mark.long
def test_workers_join_and_leave_and_die_with_their_node(cluster, tmp_path):
    three_nodes(cluster)
    kwargs = {"folder": str(tmp_path), "seconds": 1e-3}
    with Fleet(Walk, new_model(), 2, steps_per_sync=40, env_kwargs=kwargs) as fleet:
        fleet.run(200)
        fleet.remove_workers([0])
        assert fleet.add_workers(2) == [2, 3]
        assert fleet.wait() == 3  # one on each node
        fleet.run(200)
        dying = lose_node(cluster, seconds=0.02)
        syncs = fleet.run(800)
        dying.join()
        while not any(sync.n_deaths for sync in syncs):
            syncs.append(fleet.sync())
        three_nodes(cluster)
        assert fleet.wait() == 3
        assert fleet.sync().n_workers == 3
        assert_as_one_agent(fleet, tmp_path)


@pytest.mark.long
def test_a_fleet_counts_nothing_twice_when_workers_die_at_random(cluster, tmp_path):
    kwargs = {"folder": str(tmp_path), "seconds": 2e-3}
    three_nodes(cluster)
    options = {"env_kwargs": kwargs, "travel": "rows", "max_restarts": 20}
    with Fleet(Walk, new_model(), 3, steps_per_sync=50, **options) as fleet:
        assert fleet.wait() == 3
        with Killer("Explorer", times=5, seed=1) as killer:
            while killer.killed < 5:
                fleet.sync()
        fleet.run(500)
        assert_as_one_agent(fleet, tmp_path)


@pytest.mark.long
def test_an_environment_that_does_not_exist_is_named(cluster):
    with (
        pytest.raises(ValueError, match=r"worker 0: NameNotFound: .*Nowhere"),
        Fleet("Nowhere-v0", new_model(), 1) as fleet,
    ):
        fleet.sync()


@pytest.mark.long
def test_a_dataset_of_ray_data_is_learned_block_by_block(cluster):
    import ray.data

    columns = {"x0": X[:, 0], "x1": X[:, 1], "a": Y[:, 0], "b": Y[:, 1]}
    table = pyarrow.table(columns)
    dataset = ray.data.from_arrow([table[:1000], table[1000:3000], table[3000:]])
    assert_learned_once(fit(dataset, REGRESSOR, target=["a", "b"], n_workers=2, sample_rows=10))


@pytest.mark.long
def test_without_a_cluster_a_local_one_learns_and_ends(cluster, monkeypatch):
    ray.shutdown()  # Ray Data does not survive this, so this is the last test
    monkeypatch.setenv("RAY_ADDRESS", "local")  # also if another one runs on this machine
    before = signal.getsignal(signal.SIGTERM)
    assert_learned_once(fit(blocks(), REGRESSOR, n_workers=1))
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is before
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
