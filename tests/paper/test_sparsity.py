"""Figure 7 in small, and the facts behind its two updates."""

import numpy as np
import pytest

pytest.importorskip("tyro")

from losse import FTLRegressor, LosseEncoder
from losse.cli import main
from losse.paper.random_walk import walks
from losse.paper.sparsity.descent import ReachedCells, descend
from losse.paper.sparsity.experiment import PRESETS, Settings, execute
from losse.runs.experiment import Run
from losse.runs.store import read_records

GRIDS = {"n_grids": 10, "grid_dim": 2}


def score(method, level=0.99, seed=0, samples=1500, bins=10, **options):
    given = {"samples": samples, "period": 50, **GRIDS, "n_bins": bins}
    given |= {"solver": "sparse", "ridge": 1e-5} if method == "losse" else {"minibatch": 50}
    (record,) = execute(Settings(), [Run("sparsity", method, level, seed, given | options)])
    return record.score


def test_the_command_writes_records_table_and_figure(tmp_path):
    main(["reproduce", "sparsity", "--samples", "50", "--seeds", "1", "--workers", "0",
          "--out", str(tmp_path)])  # fmt: skip
    preset = PRESETS["quick"]
    records = read_records(tmp_path)
    assert len(records) == 3 * len(preset.bins) * len(preset.levels)
    assert {record.settings["n_bins"] for record in records} == set(preset.bins)
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "table.csv").read_text().count("\n") == 1 + 3 * len(preset.bins)


def test_following_the_leader_does_not_forget_where_descent_does():
    leader = [score("losse", bins=bins) for bins in (5, 10, 30)]
    assert leader[0] > leader[1] > leader[2]
    for bins, error in zip((5, 10), leader, strict=False):
        rates = [score("gradient-descent", bins=bins, learning_rate=r) for r in (1e-2, 3e-2, 1e-1)]
        assert min(rates) > 4 * error


def test_a_diverged_learner_scores_infinity():
    assert score("gradient-descent", samples=1000, learning_rate=10.0) == np.inf


@pytest.mark.parametrize("bins", [5, 20])
def test_cells_that_no_input_reaches_change_nothing(bins):
    stream, test = walks.random_walk(0.9, 400, 50, seed=1)
    whole, reached = (
        FTLRegressor(
            kind(10, bins, 2, scaling=None, seed=1).fit(stream.X), solver="sparse", ridge=1e-5
        )
        for kind in (LosseEncoder, ReachedCells)
    )
    for model in (whole, reached):
        model.partial_fit(stream.X, stream.y)
    assert reached.encoder_.dimension < whole.encoder_.dimension
    far = np.concatenate([test.X, [[-30.0], [30.0]]])  # also cells that the stream never saw
    np.testing.assert_allclose(reached.predict(far), whole.predict(far), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("adam", [False, True])
def test_descent_takes_the_steps_of_its_definition(adam):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(35, 1)), rng.normal(size=35)
    features = LosseEncoder(4, 5, 2, scaling=None).fit(x).encode(x)
    phi = features.matrix().toarray()
    w, mean, square = np.zeros((3, phi.shape[1]))
    for t, start in enumerate(range(0, 35, 10), start=1):
        rows = slice(start, start + 10)
        gradient = 2 * phi[rows].T @ (phi[rows] @ w - y[rows]) / len(y[rows])
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        w = w - 0.05 * (step if adam else gradient)
    result = descend(features, y, minibatch=10, learning_rate=0.05, adam=adam)
    np.testing.assert_allclose(result, w, rtol=1e-7, atol=1e-10)
