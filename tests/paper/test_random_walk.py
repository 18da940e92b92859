"""Figure 4 in small, and the facts behind its learners."""

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("jax")
pytest.importorskip("optax")

import jax
import optax

from losse import LosseEncoder
from losse.cli import main
from losse.paper import network
from losse.paper.random_walk import experiment as random_walk
from losse.paper.random_walk import networks, walks
from losse.paper.random_walk.experiment import METHODS, PRESETS, Settings, execute, final, sweep
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.runs.store import read_records


def make(method, level=0.9, seed=0, samples=1000, **options):
    given = {"samples": samples, "period": 50, **random_walk.OPTIONS[method], **options}
    return Run("random-walk", method, level, seed, given)


def score(method, **options):
    (record,) = execute(Settings(), [make(method, **options)])
    return record.score


def test_the_command_writes_records_table_and_figures(tmp_path):
    methods = ["losse", "nn-online"]
    main(["reproduce", "random-walk", "--methods", *methods, "--samples", "100", "--seeds", "2",
          "--workers", "0", "--out", str(tmp_path)])  # fmt: skip
    records = read_records(tmp_path)
    levels = PRESETS["quick"].levels
    assert len(records) == len(methods) * len(levels) * 2
    assert {record.setting for record in records} == set(levels)
    for record in records:
        assert record.curve[-1] == (100, pytest.approx(record.score, rel=1e-3))
        assert len(record.curve) == 10
        assert record.seconds > 0
    for name in ("errors", "streams"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    assert (tmp_path / "table.md").read_text().count("\n") == 2 + len(methods)


def test_losse_remembers_where_the_networks_forget():
    level = 0.99
    losse = score("losse", level=level)
    assert losse < 0.01
    assert score("losse-exact", level=level) < 0.01
    assert score("fourier", level=level, scale=10.0) < 0.05
    for method in ("nn-online", "nn-batch"):
        rates = [score(method, level=level, learning_rate=rate) for rate in (1e-4, 1e-3, 1e-2)]
        assert min(rates) > 10 * losse


def test_the_exact_learner_is_the_ridge_solution():
    run = make("losse-exact", samples=300)
    stream, test = walks.random_walk(0.9, 300, 50, seed=0)
    encoder = LosseEncoder(10, 10, 2, scaling=None, seed=0).fit(stream.X)
    phi = encoder.transform(stream.X).toarray()
    weights = np.linalg.solve(phi.T @ phi + 1e-5 * 300 * np.eye(phi.shape[1]), phi.T @ stream.y)
    expected = np.mean((encoder.transform(test.X) @ weights - test.y) ** 2)
    assert execute(Settings(), [run])[0].score == pytest.approx(expected, rel=0.05)


def test_the_sparse_learner_gives_what_single_rows_give():
    whole = score("losse", samples=200)
    assert score("losse", samples=200, rows=1) == whole


@pytest.mark.parametrize("method", ["AMFRegressor", "HoeffdingTreeRegressor", "KNNRegressor"])
def test_rivers_regressors_learn(method):
    pytest.importorskip("river")
    assert score("river", regressor=method, samples=600, level=0.0) < 0.3


def test_a_network_is_the_same_alone_and_beside_others():
    runs = [make("nn-batch", seed=seed, learning_rate=1e-3) for seed in (0, 1)]
    together = [record.score for record in execute(Settings(), runs)]
    alone = [execute(Settings(), [run])[0].score for run in runs]
    np.testing.assert_allclose(together, alone, rtol=1e-3)
    assert len(set(together)) == 2


def test_the_compiled_stream_is_a_loop_of_adam_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1, 30, 4, 1)).astype(np.float32)
    Y = np.sin(X[..., 0])
    learned = networks.learn_streams(
        X, Y, X[:, 0], hidden=(8, 8), learning_rate=1e-2, seeds=[5], checkpoints=3
    )
    optimiser = optax.adam(1e-2)
    parameters = network.initialise(jax.random.key(5), (1, 8, 8, 1))
    state = optimiser.init(parameters)

    @jax.jit
    def update(parameters, state, x, y):
        slope = jax.grad(lambda p: ((network.forward(p, x)[:, 0] - y) ** 2).mean())(parameters)
        change, state = optimiser.update(slope, state)
        return optax.apply_updates(parameters, change), state

    for x, y in zip(X[0], Y[0], strict=True):
        parameters, state = update(parameters, state, x, y)
    expected = network.forward(parameters, X[0, 0])[:, 0]
    assert learned.predictions.shape == (3, 1, 4)
    np.testing.assert_allclose(learned.predictions[-1, 0], expected, rtol=1e-3, atol=1e-4)


def test_minibatches_come_from_around_the_centre_of_their_step():
    stream = walks.random_walk(0.99, 500, 50, seed=3).stream
    X, Y = walks.minibatches(stream, 50, seed=3)
    offsets = (X - stream.centres[:, None]) / stream.spread
    assert abs(offsets.mean()) < 0.05
    assert offsets.std() == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(Y, np.sin(2 * np.pi * X**2))
    assert not np.isin(X, stream.X).any()


def test_the_paper_preset_is_the_papers():
    settings = Settings(preset="paper")
    runs = sweep(settings)
    online = [run for run in runs if run.method == "nn-online" and run.setting == 0.0]
    assert sorted({run.options["learning_rate"] for run in online}) == [
        5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2
    ]  # fmt: skip
    records = [
        Record(experiment="random-walk", method=run.method, setting=run.setting, seed=run.seed,
               score=1.0, settings=run.options) for run in runs
    ]  # fmt: skip
    chosen = final(settings, records)
    assert {run.method for run in chosen} == set(METHODS)
    assert not {run.seed for run in chosen} & {run.seed for run in runs}
    for method in ("losse", "nn-online", "nn-batch"):
        seeds = [run.seed for run in chosen if run.method == method and run.setting == 0.9]
        assert seeds == list(range(50))
    losse = next(run for run in chosen if run.method == "losse")
    assert [losse.options[key] for key in ("n_grids", "n_bins", "grid_dim")] == [10, 10, 2]
