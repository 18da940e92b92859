"""Updates by the thousand, after which a model takes no more memory than before."""

import gc
import tracemalloc

import numpy as np

from losse import AdaptiveEncoder, FTLRegressor


def leak(updates, warm_up=400):
    """Make many updates of the recommended model, and raise if memory grows with their number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(warm_up + 400, 2))
    Y = np.sin(X)
    tracemalloc.start()
    try:
        model, sizes = FTLRegressor(AdaptiveEncoder(5, n_stages=1, warm_up=warm_up)).fit(X, Y), []
        for _ in range(8):
            for k in range(updates // 8):
                at = 3 * k % warm_up
                model.partial_fit(X[at : at + 3], Y[at : at + 3])
                model.predict(X[at : at + 1])
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    grown = max(sizes[4:]) - max(sizes[:4])  # an inverse comes and goes
    assert grown < 200_000, f"{grown} bytes more after {updates // 2} updates"
