"""Learn a stream that drifts, and show that what was seen first is still known.

Run it with ``python examples/stream_regression.py``. It needs no extra and takes seconds.
"""

import numpy as np

from losse import FTLRegressor, LosseEncoder


def main() -> None:
    """Learn a sorted stream batch by batch; compare early and late parts."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, size=3000))[:, None]
    y = np.sin(3 * x[:, 0]) + rng.normal(scale=0.1, size=len(x))
    model = FTLRegressor(LosseEncoder(n_grids=20, n_bins=15, grid_dim=1, scaling=(-3, 3)))
    for start in range(0, len(x), 30):
        model.partial_fit(x[start : start + 30], y[start : start + 30])
    errors = np.abs(model.predict(x) - np.sin(3 * x[:, 0]))
    print(f"error on the first third, seen long ago: {errors[:1000].mean():.3f}")
    print(f"error on the last third, seen just now:  {errors[2000:].mean():.3f}")


if __name__ == "__main__":
    main()
