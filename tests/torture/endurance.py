"""Updates by the thousand, after which a model takes no more memory than before."""

import gc
import tracemalloc

import numpy as np

from losse import AdaptiveEncoder, FTLRegressor


def leak(updates, warm_up=400):
    """Make many updates of the recommended model, and raise if memory grows with their number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(warm_up + 1000, 2))
    Y = np.sin(X)
    model = FTLRegressor(AdaptiveEncoder(10, warm_up=warm_up)).fit(X, Y)
    gc.collect()
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(2):
            for k in range(updates // 2):
                at = 3 * k % warm_up
                model.partial_fit(X[at : at + 3], Y[at : at + 3])
                model.predict(X[at : at + 1])
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    grown = sizes[1] - sizes[0]
    assert grown < 200_000, f"{grown} bytes more after {updates // 2} updates"
