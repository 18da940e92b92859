"""On a cluster of three nodes: what many learn is what one would have, whoever dies in between."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs losse[ray]")
pytest.importorskip("gymnasium")

from ray.cluster_utils import Cluster

from losse import FTLRegressor, LosseEncoder
from losse.distributed import Fleet, fit
from losse.distributed.cluster import connected
from losse.distributed.explorer import seed_of
from losse.runs.cluster import run_jobs_on_ray
from losse.runs.workers import Failure
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
    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    cluster.others = [cluster.add_node(**NODE) for _ in range(2)]
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


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


def test_many_workers_learn_what_one_process_does(cluster):
    seen = []
    model = fit(
        iter(blocks()), REGRESSOR, n_workers=3, sample_rows=600, blocks_per_task=2,
        progress=lambda *counts: seen.append(counts),
    )  # fmt: skip
    assert_learned_once(model)
    assert seen[0] == (2, 1000)
    assert seen[-1] == (12, 6000)
    assert not hasattr(REGRESSOR, "n_features_in_")  # what is given stays as it is
    model.partial_fit(X[:10], Y[:10])  # and what comes out goes on


def test_ray_data_and_parquet_files_are_learned_alike(cluster, tmp_path):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    table = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "a": Y[:, 0], "b": Y[:, 1]})
    columns = {"target": ["a", "b"], "inputs": ["x0", "x1"]}
    parts = [pa.Table.from_pandas(table[k::3], preserve_index=False) for k in range(3)]
    assert_learned_once(fit(ray.data.from_arrow(parts), REGRESSOR, n_workers=2, **columns))
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for path, part in zip(paths, parts, strict=True):
        pq.write_table(part, path)
    assert_learned_once(fit(paths, REGRESSOR, n_workers=2, sample_rows=10, **columns))


def test_an_encoder_that_learns_is_frozen_on_a_sample(cluster):
    model = fit(blocks(rows=slice(1500)), n_workers=2, sample_rows=600)
    alone = FTLRegressor(
        model.encoder_, ridge=model.ridge_, center=model.center, solver="dense"
    ).fit(X[:1500], Y[:1500])  # fmt: skip
    assert model.n_samples_seen_ == 1500
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6, atol=1e-6)


def test_no_block_is_lost_or_learned_twice_when_workers_die_at_random(cluster):
    for seed in range(2):
        with Killer("learn", times=2, seed=seed) as killer:
            model = fit(
                slow_blocks(), REGRESSOR, target=("a", "b"), n_workers=3, sample_rows=1,
                blocks_per_task=2, max_retries=10,
            )  # fmt: skip
        assert killer.killed
        assert_learned_once(model)


def test_a_worker_that_always_dies_is_named_with_its_blocks(cluster):
    with (
        Killer("learn", times=50, seed=0),
        pytest.raises(RuntimeError, match=r"block \d+ to block \d+: the worker died"),
    ):
        fit(slow_blocks(seconds=2), REGRESSOR, target=("a", "b"), n_workers=2, sample_rows=1,
            max_retries=0)  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((X[:5, :1], Y[:5]), "block 3: X has 1 features, expected 2"),
        ((X[:5], Y[:5, :1]), r"block 3: y has shape \(5, 1\)"),
        ((np.full((5, 2), np.nan), Y[:5]), "block 3: X contains NaN"),
        ((X[:5], Y[:4]), "block 3: X has 5 rows but y has 4"),
        ({"x": X[:5]}, "block 3: it is a table, and target=None"),
        (7, "block 3: it is a int"),
        ("nowhere.parquet", r"block 3 \(nowhere.parquet\) cannot be read"),
    ],
)
def test_a_bad_block_is_named_and_nothing_is_learned(cluster, bad, message):
    parts = blocks()
    parts[3] = bad
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        fit(parts, REGRESSOR, n_workers=2, sample_rows=1, blocks_per_task=4)


def test_what_cannot_be_learned_apart_is_refused(cluster):
    with pytest.raises(ValueError, match=r"discount=0.9 weighs rows by their order"):
        fit(blocks(), FTLRegressor(ENCODER, discount=0.9))
    with pytest.raises(ValueError, match="dataset has no rows"):
        fit([], REGRESSOR)
    with pytest.raises(TypeError, match="dataset='a.parquet' is not a data set"):
        fit("a.parquet", REGRESSOR)
    with pytest.raises(ConnectionError, match="is not the cluster that this process is connected"):
        fit(blocks(), REGRESSOR, address="127.0.0.1:1")


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


def test_a_fleet_learns_what_one_agent_does_whichever_worker_dies(cluster, tmp_path):
    kwargs = {"folder": str(tmp_path), "seconds": 2e-3}
    with Fleet(Walk, new_model(), 3, steps_per_sync=50, env_kwargs=kwargs, policy=greedy) as fleet:
        assert fleet.wait() == 3
        with Killer("Explorer", times=2, seed=1) as killer:
            syncs = fleet.run(1500)
        assert killer.killed == 2
        assert sum(sync.n_deaths for sync in syncs) >= 1
        assert fleet.world_model.settled  # so that sums have travelled, not rows
        assert_as_one_agent(fleet, tmp_path)


def test_workers_join_and_leave_and_die_with_their_node(cluster, tmp_path):
    kwargs = {"folder": str(tmp_path), "seconds": 1e-3}
    with Fleet(Walk, new_model(), 2, steps_per_sync=40, env_kwargs=kwargs) as fleet:
        fleet.run(200)
        fleet.remove_workers([0])
        assert fleet.add_workers(2) == [2, 3]
        assert fleet.wait() == 3  # one on each node
        fleet.run(200)
        node = cluster.others.pop()
        dying = threading.Timer(0.02, cluster.remove_node, (node,), {"allow_graceful": False})
        dying.start()
        syncs = fleet.run(800)
        dying.join()
        while not any(sync.n_deaths for sync in syncs):
            syncs.append(fleet.sync())
        cluster.others.append(cluster.add_node(**NODE))
        assert fleet.wait() == 3
        assert fleet.sync().n_workers == 3
        assert_as_one_agent(fleet, tmp_path)


def test_a_fault_of_an_environment_names_the_worker_and_costs_no_other(cluster, tmp_path):
    kwargs = {"folder": str(tmp_path), "bad_worker_seed": seed_of(0, 1, 0)}
    with Fleet(Walk, new_model(), 2, steps_per_sync=30, env_kwargs=kwargs, travel="rows") as fleet:
        assert fleet.wait() == 2
        with pytest.raises(ValueError, match="worker 1: ArithmeticError: the robot fell over"):
            fleet.sync()
        assert fleet.world_model.n_transitions == 30
        fleet.wait()
        assert fleet.sync().n_workers == 2  # its next start is another
        assert_as_one_agent(fleet, tmp_path)
    with (
        pytest.raises(ValueError, match="worker 0: NameNotFound: .*Nowhere"),
        Fleet("Nowhere-v0", new_model(), 1) as fleet,
    ):
        fleet.sync()


def test_jobs_of_an_experiment_fail_alone(cluster):
    jobs = ["6 * 7", "1 / 0", "__import__('os').kill(__import__('os').getpid(), 9)",
            "__import__('os').environ['OPENBLAS_NUM_THREADS']"]  # fmt: skip
    results = dict(run_jobs_on_ray(eval, jobs, workers=2))
    assert results[jobs[0]] == 42
    assert results[jobs[1]].reason == "ZeroDivisionError: division by zero"
    assert isinstance(results[jobs[2]], Failure)
    assert results[jobs[2]].reason.startswith("its process ended")
    assert results[jobs[3]] == "1"


def test_a_node_that_dies_takes_no_rows_with_it(cluster):
    node = cluster.others.pop()
    dying = threading.Timer(1.0, cluster.remove_node, (node,), {"allow_graceful": False})
    dying.start()
    model = fit(
        slow_blocks(n=20, seconds=0.3), REGRESSOR, target=("a", "b"), n_workers=3, sample_rows=1,
        blocks_per_task=2, max_retries=10,
    )  # fmt: skip
    dying.join()
    assert_learned_once(model)


def test_without_a_cluster_a_local_one_is_started_and_ends(cluster, monkeypatch):
    ray.shutdown()
    try:
        with pytest.raises(ConnectionError, match="no Ray cluster answers there"):
            fit(blocks(), REGRESSOR, address="127.0.0.1:1")
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)  # the one that is named
        with connected():
            assert ray.get_runtime_context().gcs_address == cluster.address
        monkeypatch.setenv("RAY_ADDRESS", "local")
        assert_learned_once(fit(blocks(), REGRESSOR, n_workers=1))
        assert not ray.is_initialized()
    finally:
        if not ray.is_initialized():
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
