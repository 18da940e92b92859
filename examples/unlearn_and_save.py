"""Take rows out of a model as if it had never seen them, and keep the result in a file.

Run it with ``python examples/unlearn_and_save.py``. It needs no extra and takes seconds.
"""

import tempfile
from pathlib import Path

import numpy as np

from losse import FTLRegressor, LosseEncoder


def main() -> None:
    """Unlearn the readings of a broken sensor, save, load, and compare."""
    X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 2))
    y = np.sin(X[:, 0]) * X[:, 1]
    broken = np.arange(len(X)) % 10 == 0
    seen = np.where(broken, y + 5.0, y)
    encoder = LosseEncoder(n_grids=15, scaling=(-3, 3)).fit(X)
    model = FTLRegressor(encoder, solver="dense", ridge=1e-4).fit(X, seen)
    print(f"with the broken readings: error {np.abs(model.predict(X) - y).mean():.3f}")
    model.unlearn(X[broken], seen[broken])
    print(f"without them:             error {np.abs(model.predict(X) - y).mean():.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.losse")
        model.save(path)
        again = FTLRegressor.load(path)
        print(f"read from {path.stat().st_size / 1e6:.1f} MB: the same predictions, ", end="")
        print(bool((again.predict(X) == model.predict(X)).all()))


if __name__ == "__main__":
    main()
