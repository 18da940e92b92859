"""What version 0.1 predicted and saved, the present version predicts and loads.

``tests/version-0.1.zip`` was written by 0.1 on a processor with AVX-512. Sums are rounded in
another order on other processors, and since the kernels fit their blocks to the registers.
"""

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from losse import FourierEncoder, FTLRegressor, LosseEncoder, TileEncoder

with ZipFile(Path(__file__).parents[1] / "version-0.1.zip") as files:
    PREDICTIONS = json.loads(files.read("predictions.json"))
    CHECKPOINTS = json.loads(files.read("checkpoints.json"))
ENCODERS = {
    "losse": LosseEncoder(6, 4, scaling=(-3, 3)),
    "linear": LosseEncoder(6, 4, linear=True, scaling="standard"),
    "tile": TileEncoder(8, 5, scaling=(-3, 3)),
    "fourier": FourierEncoder(60, scaling=(-3, 3)),
}


@pytest.mark.parametrize("case", PREDICTIONS)
def test_predictions_are_those_of_version_0_1(case):
    """After batches of many sizes on a stream that moves, and after unlearning."""
    name, solver, dtype, discount = case.split("/")
    rng = np.random.default_rng(2024)
    X = rng.normal(size=(600, 3))
    X[300:] += 1.5
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]])
    Y += 0.1 * rng.normal(size=(600, 2))
    tests = rng.normal(size=(25, 3))
    model = FTLRegressor(
        ENCODERS[name], solver=solver, ridge=1e-4, discount=float(discount), dtype=dtype
    )
    sizes, start = np.random.default_rng(1), 0
    while start < len(X):
        end = min(start + int(sizes.integers(1, 40)), len(X))
        model.partial_fit(X[start:end], Y[start:end])
        start = end
    model.unlearn(X[-5:], Y[-5:])
    expected = np.array(PREDICTIONS[case])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.predict(tests), expected, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_of_version_0_1_go_on(version_0_1, name):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(200, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    expected = CHECKPOINTS[name]
    model = FTLRegressor.load(version_0_1 / f"{name}.losse")
    assert (model.n_samples_seen_, model.ridge_) == (expected["n"], expected["ridge"])
    # The cascade of adaptive encoders is computed in single precision since.
    tolerance = 1e-4 if name == "adaptive" else 1e-9
    before = model.predict(X[150:160])
    np.testing.assert_allclose(before, expected["predictions"], rtol=tolerance, atol=tolerance)
    after = model.partial_fit(X[120:130], Y[120:130]).predict(X[150:160])
    np.testing.assert_allclose(after, expected["after"], rtol=tolerance, atol=tolerance)
