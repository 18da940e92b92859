"""Shares of a data set in one process: every kind of block, what is frozen, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs losse[ray]")
pytest.importorskip("gymnasium")
pytest.importorskip("pandas")

import pandas as pd

from losse import FTLRegressor, LosseEncoder
from losse.distributed import cluster
from losse.distributed.blocks import Block, Columns
from losse.distributed.explorer import Explorer
from losse.distributed.increments import Header, Ledger
from losse.distributed.share import begin, learn, n_rows
from losse.ftl import merge_all

from .walk import Walk, new_model, spaces

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (900, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
WEIGHTS = RNG.uniform(0.5, 2, 900)
ENCODER = LosseEncoder(5, 4, scaling=(-3, 3)).fit(X)
REGRESSOR = FTLRegressor(ENCODER, ridge=1e-4)
WHOLE = FTLRegressor(ENCODER, ridge=1e-4, solver="dense").fit(X, Y, WEIGHTS)
COLUMNS = Columns(("a", "b"), ("x0", "x1"), "w")


def learned(kind, columns=COLUMNS, regressor=REGRESSOR):
    """Model of three blocks of a kind, the first of which is the sample."""
    parts = [Block(f"block {k}", kind(slice(k, None, 3))) for k in range(3)]
    assert list(map(n_rows, parts)) == [300] * 3
    start, pattern, sample, n = begin(regressor, columns, parts[:1])
    model, more = learn(start, None, parts[1:2])
    model, rest = learn(start, model, parts[2:])
    assert (n, more, rest) == (300, 300, 300)
    return merge_all([pattern, sample, model])


def frame(rows):
    columns = {"b": Y[rows, 1], "x0": X[rows, 0], "w": WEIGHTS[rows], "a": Y[rows, 0]}
    return pd.DataFrame(columns | {"x1": X[rows, 1], "unused": 0.0})


def arrow(rows):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame(rows))


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: (X[rows], Y[rows], WEIGHTS[rows]),
        frame,
        arrow,
        lambda rows: dict(frame(rows)),
        lambda rows: arrow(rows).to_batches()[0],
    ],
    ids=["arrays", "pandas", "arrow", "dict", "record batch"],
)
def test_every_kind_of_block_is_learned_alike(kind):
    model = learned(kind)
    assert model.n_samples_seen_ == 900
    np.testing.assert_allclose(model.predict(X), WHOLE.predict(X), rtol=1e-9, atol=1e-9)


def test_parquet_files_are_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("losse.distributed.blocks.BATCH_ROWS", 70)
    monkeypatch.setattr("losse.distributed.share.ROWS_PER_FEATURE", 1)  # learned in several calls

    def file(rows):
        path = tmp_path / f"{rows.start}.parquet"
        frame(rows).to_parquet(path)
        return str(path)

    np.testing.assert_allclose(learned(file).predict(X), WHOLE.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("regressor", [FTLRegressor(LosseEncoder(5, 4)), FTLRegressor()])
def test_an_encoder_and_a_ridge_are_frozen_on_the_sample(regressor):
    model = learned(lambda rows: (X[rows], Y[rows, 0]), Columns(), regressor)
    frozen = {"encoder": model.encoder_, "ridge": model.ridge_, "center": True, "solver": "dense"}
    alone = FTLRegressor(**frozen).fit(X, Y[:, 0])
    assert model.predict(X).shape == (900,)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6, atol=1e-6)
    assert not hasattr(regressor, "n_features_in_")  # what is given stays as it is


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((X[:5, :1], Y[:5]), "block 3: X has 1 features, expected 2"),
        ((X[:5], Y[:5, :1]), r"block 3: y has shape \(5, 1\)"),
        ((np.full((5, 2), np.nan), Y[:5]), "block 3: X contains NaN"),
        ((X[:5], Y[:4]), "block 3: X has 5 rows but y has 4"),
        ((X[:5],), "block 3: it has 1 arrays"),
        ({"x0": X[:5, 0], "x1": X[:5, 1], "a": Y[:5, 0]}, "block 3: it has no column 'b'"),
        ({"a": ["text"], "b": [1.0]}, "block 3: column 'a' is not made of numbers"),
        (7, "block 3: it is a int: a block is"),
        ("nowhere.parquet", "block 3 cannot be read: .*nowhere.parquet"),
    ],
)
def test_a_bad_block_is_named(bad, message):
    start, *_ = begin(REGRESSOR, COLUMNS, [Block("block 0", (X, Y))])
    model, _ = learn(start, None, [Block("block 1", (X, Y))])
    before = model.predict(X)
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        learn(start, model, [Block("block 2", (X, Y)), Block("block 3", bad)])
    assert (model.predict(X) == before).all()


def test_tables_need_a_target_and_empty_blocks_nothing():
    with pytest.raises(ValueError, match="block 0: it is a table, and target=None"):
        begin(REGRESSOR, Columns(), [Block("block 0", frame(slice(None)))])
    start, *_ = begin(REGRESSOR, Columns(), [Block("block 0", (X, Y))])
    assert learn(start, None, [Block("block 1", (X[:0], Y[:0]))]) == (None, 0)


def test_without_a_cluster_a_local_ray_is_started_and_ends(monkeypatch):
    calls = []
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "init", lambda *args, **_: calls.append(args))
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: calls.append("end"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with cluster.connected():
        assert calls == [("auto",)]  # one that runs on this machine

    def none_runs(address, **_):
        calls.append(address)
        if address == "auto":
            raise ConnectionError("Could not find any running Ray instance.\nPlease specify one.")

    monkeypatch.setattr(cluster.ray, "init", none_runs)
    calls.clear()
    with pytest.raises(ArithmeticError), cluster.connected(workers=2):
        raise ArithmeticError
    assert calls == ["auto", "local", "end"]
    with pytest.raises(ConnectionError, match=r"instance.\). Start one by `ray start --head`"):
        cluster.connected("auto").__enter__()
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ConnectionError, match=r"address='127.0.0.1:1': no Ray cluster answers"):
        cluster.connected().__enter__()


def test_a_ledger_counts_nothing_twice_and_nothing_of_the_dead():
    ledger = Ledger()
    ledger.begin(0)
    ledger.begin(1)
    ledger.commit([Header(0, 0, 0, 10), Header(1, 0, 0, 10)])
    with pytest.raises(ValueError, match=r"increment 0 of worker 1 \(start 0\) is not the next"):
        ledger.commit([Header(0, 0, 1, 10), Header(1, 0, 0, 10)])
    assert ledger.committed == {(0, 0): 10, (1, 0): 10}  # neither of the two
    assert not ledger.accepts(Header(0, 0, 2, 10))  # one is missing
    assert not ledger.accepts(Header(2, 0, 0, 10))  # nobody knows it
    ledger.end(1)
    assert not ledger.accepts(Header(1, 0, 1, 10))


def test_an_explorer_returns_what_it_has_seen_since_the_last_time(tmp_path):
    def explorer(policy=None):
        one = Explorer(0, 0, Walk, {"folder": str(tmp_path)}, policy, seed=0)
        assert one.begin() == spaces()
        return one

    rows, sums = explorer(), explorer()
    whole, added = new_model(), new_model()
    for k in range(3):
        header, seen = rows.explore(None, 20, sums=False)
        assert header == Header(0, 0, k, 20)
        whole.update(*seen)
        _, increment = sums.explore(new_model() if k == 0 else None, 20, sums=True)
        assert increment.n_transitions == 20
        added.merge(increment)
    obs, actions = RNG.uniform(-1, 1, (50, 2)), RNG.integers(0, 2, 50)
    np.testing.assert_allclose(whole.step(obs, actions)[1], added.step(obs, actions)[1])
    seen_by_policy = []

    def policy(obs, model):
        seen_by_policy.append(model.n_transitions)
        return 0

    explorer(policy).explore(new_model(), 4, sums=True)
    assert seen_by_policy == [0, 1, 2, 3]  # each transition is learned at once
