"""Learn shards of the data in separate processes, and merge the models into one.

Run it with ``python examples/merge_shards.py``. The merged model is the one that a single process
would have learned from all rows.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from losse import FTLRegressor, LosseEncoder
from losse.ftl import merge_all


def make_rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n_rows, 4))
    y = np.sin(X[:, 0]) * X[:, 1] + np.abs(X[:, 2] - X[:, 3]) + rng.normal(scale=0.1, size=n_rows)
    return X, y


def learn_shard(encoder: LosseEncoder, seed: int) -> FTLRegressor:
    """What a worker does: learn its own part of the data, in batches."""
    model = FTLRegressor(encoder, ridge=1e-5)
    X, y = make_rows(2000, seed)
    for start in range(0, len(X), 250):
        model.partial_fit(X[start : start + 250], y[start : start + 250])
    return model


def main() -> None:
    """Merge four shards, and compare with one model that has learned them all."""
    # The same encoder for everyone: bounds instead of "standard", so no worker's data shape it.
    encoder = LosseEncoder(n_grids=10, scaling=(-3, 3)).fit(np.zeros((1, 4)))
    shards = range(4)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=2, mp_context=spawn) as pool:
        merged = merge_all(pool.map(learn_shard, [encoder] * len(shards), shards))

    rows = [make_rows(2000, seed) for seed in shards]
    X, y = np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows])
    whole = FTLRegressor(encoder, solver="dense", ridge=1e-5).fit(X, y)
    test_X, test_y = make_rows(1000, seed=99)
    difference = np.abs(merged.predict(test_X) - whole.predict(test_X)).max()
    print(f"rows learned: {merged.n_samples_seen_}")
    print(f"R^2 on new rows: {merged.score(test_X, test_y):.3f}")
    print(f"largest difference from one model of all rows: {difference:.1e}")


if __name__ == "__main__":
    main()
