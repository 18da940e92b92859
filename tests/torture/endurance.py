"""Updates by the thousand, after which a model takes no more memory than before."""

import gc
import os
import tracemalloc
from pathlib import Path

import numpy as np

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder

TRACED = 10_000
"""Updates above which memory is that of the process: tracing makes them three times as slow."""
PARTS = 8


def leak(updates, warm_up=400):
    """Update a recommended model, of a small encoder; raise if memory grows with their number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(warm_up + 400, 2))
    Y = np.sin(X)
    if trace := updates <= TRACED:
        tracemalloc.start()
    try:
        model, sizes = FTLRegressor(AdaptiveEncoder(5, n_stages=1, warm_up=warm_up)).fit(X, Y), []
        for part in range(PARTS):
            for k in range(updates // PARTS):
                at = 3 * k % warm_up
                model.partial_fit(X[at : at + 3], Y[at : at + 3])
                model.predict(X[at : at + 1])
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] if trace else resident())
            if not trace:
                done = (part + 1) * (updates // PARTS)
                print(f"{done} updates: {sizes[-1] / 2**20:.1f} MiB", flush=True)
    finally:
        tracemalloc.stop()
    grown = max(sizes[PARTS // 2 :]) - max(sizes[: PARTS // 2])  # an inverse comes and goes
    limit = max(200_000, updates)  # a byte per update: any object is larger
    assert grown < limit, f"{grown} bytes more after {updates // 2} updates"


def resident():
    """Bytes of this process that are in memory (Linux)."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def files_in_a_row(folder, cycles):
    """Save and load a model after every row, and raise unless it is as one that never was saved."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(cycles + 2, 2))
    Y = np.sin(X)
    encoder = LosseEncoder(4, 4, scaling=(-3, 3)).fit(X)
    alone, saved = (
        FTLRegressor(encoder, ridge=1e-4, discount=0.999).fit(X[:2], Y[:2]) for _ in range(2)
    )
    for k in range(2, cycles + 2):
        alone.partial_fit(X[[k]], Y[[k]])
        saved.partial_fit(X[[k]], Y[[k]]).save(folder / "model.losse", progress=False)
        saved = FTLRegressor.load(folder / "model.losse", progress=False)
    assert (alone.weights_ == saved.weights_).all()
    assert (alone.predict(X) == saved.predict(X)).all()
