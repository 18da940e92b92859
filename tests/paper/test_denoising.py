"""The denoising experiment: its encoders, its linear layer, and a small run from end to end."""

import numpy as np
import pytest

from losse import FTLRegressor
from losse.cli import main
from losse.paper import load
from losse.paper.denoising.experiment import ADAM, CLOSED_FORM, METHODS, Settings, final, sweep
from losse.paper.denoising.learners import ACTIVE, make_encoder, swept_option
from losse.paper.denoising.linear_layer import active_features, learn_linear, linear_error
from losse.runs.record import Record
from losse.runs.store import read_records

ADAM_AND_FTL = ("losse", "losse-ftl")


@pytest.fixture
def patches():
    rng = np.random.default_rng(0)
    clean = rng.uniform(size=(600, 1)) * rng.uniform(size=(600, 9))
    return clean + rng.normal(scale=0.3, size=clean.shape), clean


@pytest.mark.parametrize("method", [*ADAM, *CLOSED_FORM])
@pytest.mark.parametrize("value", [5, 9])
def test_no_encoder_has_more_than_80_features_that_are_not_zero(patches, method, value):
    X, _ = patches
    features = make_encoder(method, 9, value, seed=0).fit_transform(X)
    assert (features != 0).sum(axis=1).max() <= ACTIVE


@pytest.mark.parametrize("method", ADAM)
def test_active_features_are_those_of_the_encoder(patches, method):
    X, _ = patches
    encoder = make_encoder(method, 9, 5, seed=0).fit(X)
    rows = active_features(encoder, X)
    dense = np.zeros((len(X), rows.dimension))
    np.add.at(dense, (np.arange(len(X))[:, None], rows.indices), rows.values)
    expected = encoder.transform(X)
    expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
    np.testing.assert_allclose(dense, expected, atol=1e-6)


@pytest.mark.parametrize(("method", "value"), [("tile", 3), ("fourier", 1.0)])
def test_adam_converges_to_the_closed_form(patches, method, value):
    X, Y = patches
    encoder = make_encoder(method, 9, value, seed=0).fit(X)
    rows = active_features(encoder, X)
    W, training = learn_linear(rows, Y, batch=32, learning_rate=3e-3, max_epochs=2000, seed=0)
    model = FTLRegressor(encoder, solver="dense", ridge=1e-9).fit(X, Y)
    least = np.mean((model.predict(X) - Y) ** 2)
    assert training.converged
    assert least < linear_error(rows, W, Y) < 1.03 * least


def test_the_steps_are_those_of_adam(patches):
    """Against the textbook, in double precision; a last minibatch of another size included."""
    X, Y = patches
    X, Y = X[:70], Y[:70]
    rows = active_features(make_encoder("losse", 9, 5, seed=0).fit(X), X)
    W, training = learn_linear(rows, Y, batch=32, learning_rate=1e-2, max_epochs=2, seed=3)

    phi = np.zeros((70, rows.dimension))
    np.add.at(phi, (np.arange(70)[:, None], rows.indices), rows.values)
    rng = np.random.default_rng(3)
    w, mean, square = (np.zeros((rows.dimension, 9)) for _ in range(3))
    step, errors = 0, []
    for _ in range(2):
        order = rng.permutation(70)
        total = 0.0
        for some in (order[:32], order[32:64], order[64:]):
            error = phi[some] @ w - Y[some]
            total += (error**2).sum()
            gradient = 2 * phi[some].T @ error / len(some)
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            root = np.sqrt(square / (1 - 0.999**step))
            w -= 1e-2 * mean / (1 - 0.9**step) / (root + 1e-8)
        errors.append(total / Y.size)
    np.testing.assert_allclose(W, w, atol=2e-5)
    np.testing.assert_allclose([y for _, y in training.curve], errors, rtol=1e-4)


def test_runs_from_end_to_end_and_goes_on_where_it_was(tmp_path, capsys):
    methods = ["losse", "tile", "nn", "losse-ftl", "linear"]
    command = ["reproduce", "denoising", "--sides", "3", "--seeds", "2", "--epochs", "2"]
    command += ["--workers", "0", "--out", str(tmp_path), "--methods", *methods]
    main(command)
    records = read_records(tmp_path)
    assert {(r.method, r.setting, r.seed) for r in records} == {
        (method, 9, seed) for method in methods for seed in (0, 1)
    }
    for record in records:
        assert 0 < record.score < 0.2
        assert record.settings["held_out"] == "test"
        assert str(tmp_path) not in str(record)
        if record.method in ("losse", "tile"):
            assert record.details["training_error"] > record.details["least_training_error"]
    few_epochs, closed_form = (
        np.mean([r.score for r in records if r.method == method]) for method in ADAM_AND_FTL
    )
    assert closed_form < few_epochs
    for name in ("table.md", "table.csv", "denoising.png", "denoising.svg"):
        assert (tmp_path / name).stat().st_size > 100
    assert "paper" not in (tmp_path / "table.md").read_text()  # those are MNIST's

    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    main(command)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")} == before
    capsys.readouterr()


def test_on_mnist_the_papers_figures_stand_beside_ours():
    records = [
        Record(
            experiment="denoising",
            method=method,
            setting=pixels,
            seed=seed,
            score=0.03,
            settings={"dataset": "mnist"},
            details={
                "processor_seconds": 2.0,
                "epochs": 50,
                "training_error": 0.0303,
                "least_training_error": 0.03,
            },
        )
        for method in ("losse", "losse-ftl")
        for pixels in (9, 49)
        for seed in (0, 1)
    ]
    experiment = load("denoising")
    lines = experiment.table(records).markdown().splitlines()
    assert lines[2].startswith("| losse | 0.03 ± 0 | 0.03 ± 0 |")
    assert lines[2].endswith("| 50 | 1.0 % |")
    assert lines[3].startswith("| losse, paper | 0.028 | 0.04 |")
    assert len(lines) == 5
    assert len(experiment.draw(records)["denoising"].axes) == 2


def test_the_paper_preset_has_the_papers_sweeps(monkeypatch):
    monkeypatch.setattr("losse.paper.denoising.experiment.load_images", _few_images)
    settings = Settings(preset="paper")
    runs = sweep(settings)
    values = {
        method: {run.options[swept_option(method)] for run in runs if run.method == method}
        for method in ("losse", "tile", "fourier", "relu-ftl")
    }
    assert values["losse"] == values["tile"] == {5, 6, 7, 8, 9}
    assert values["fourier"] == values["relu-ftl"] == {0.1, 0.3, 0.5, 1.0, 5.0, 10.0}
    assert {run.options["held_out"] for run in runs} == {"validation"}
    assert {run.options["learning_rate"] for run in runs if run.method in ADAM} == {1e-4}

    scores = [
        Record(experiment="denoising", method=run.method, setting=run.setting, seed=run.seed,
               score=abs(run.options[swept_option(run.method)] - 5), settings=run.options)
        for run in runs
    ]  # fmt: skip
    chosen = final(settings, scores)
    assert len(chosen) == len(METHODS) * 5 * 5
    assert {run.setting for run in chosen} == {9, 16, 25, 36, 49}
    assert {run.options["held_out"] for run in chosen} == {"test"}
    assert {run.options["bins"] for run in chosen if run.method == "losse"} == {5}


def test_the_paper_preset_without_data_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("losse.paper.denoising.data.MIRRORS", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match="2"):
        main(["reproduce", "denoising", "--preset", "paper", "--out", str(tmp_path / "out")])
    message = capsys.readouterr().err
    assert "--data DIR" in message
    assert "--dataset digits" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sides": (9,)}, "sides must be from 1 to 8 for digits, got 9"),
        ({"sides": (0,), "dataset": "mnist"}, "sides must be from 1 to 28 for mnist, got 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"dataset": "digits", "data": "mnist"}, "does not go with --dataset digits"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options)


def test_the_experiment_has_the_names_that_the_machinery_needs():
    experiment = load("denoising")
    for name in ("METHODS", "NEEDS", "SEEDS_AT_ONCE", "Settings", "execute", "table", "draw"):
        assert hasattr(experiment, name)


def _few_images(dataset, folder):
    from losse.paper.denoising.data import Images

    return Images(np.zeros((10, 28, 28), np.float32), "0" * 64)
