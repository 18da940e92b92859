"""Each solver does what it says: Algorithm 2, Algorithm 1, the leader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from losse import (
    AdaptiveEncoder,
    FourierEncoder,
    FTLRegressor,
    LosseEncoder,
    ReLUEncoder,
    TileEncoder,
)
from losse.ftl.solvers import conjugate
from losse.ftl.solvers.sample_space import ridge_excess
from tests.ftl.reference import algorithm_2, leader, objective, recursive_leader, stream

RIDGE = 1e-5


@pytest.fixture
def packed(monkeypatch):
    """As if every model were large: A packed, no inverse, and soon too many samples."""
    monkeypatch.setattr("losse.ftl.memories.base.SQUARE_LIMIT", 0)
    monkeypatch.setattr("losse.ftl.solvers.exact.SAMPLE_LIMIT", 150)


def in_batches(model, X, Y, size):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
    return model


@pytest.mark.parametrize(("grids", "bins", "dim"), [(12, 10, 2), (20, 6, 1), (4, 3, 3), (1, 1, 2)])
@pytest.mark.parametrize("n_outputs", [1, 12, 50])
def test_sparse_is_algorithm_2(grids, bins, dim, n_outputs):
    X, Y = stream(300, n_outputs=n_outputs)
    encoder = LosseEncoder(grids, bins, dim).fit(X)
    model = FTLRegressor(encoder, solver="sparse", ridge=RIDGE).partial_fit(X, Y)
    Phi = encoder.transform(X)
    expected = Phi @ algorithm_2(Phi, Y, RIDGE)
    assert np.abs(model.predict(X) - expected).max() <= 1e-6 * np.abs(expected).max()


def test_sparse_is_algorithm_2_with_tiles():
    X, Y = stream(300)
    encoder = TileEncoder(15, 6, 2).fit(X)
    model = FTLRegressor(encoder, solver="sparse", ridge=RIDGE).partial_fit(X, Y)
    Phi = encoder.transform(X)
    expected = Phi @ algorithm_2(Phi, Y, RIDGE)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-7)


@given(size=st.integers(1, 60), dtype=st.sampled_from(["float64", "float32"]))
@settings(max_examples=10)
def test_sparse_batch_equals_the_loop_over_its_rows(size, dtype):
    X, Y = stream(120)
    encoder = LosseEncoder(10, 8, 2).fit(X)
    one, other = (FTLRegressor(encoder, solver="sparse", dtype=dtype, ridge=1e-5) for _ in range(2))
    in_batches(one, X, Y, 1)
    in_batches(other, X, Y, size)
    np.testing.assert_array_equal(one.weights_, other.weights_)


@pytest.mark.usefixtures("packed")
def test_sparse_on_packed_memory_is_algorithm_2():
    X, Y = stream(100)
    encoder = LosseEncoder(6, 5, 2).fit(X)
    model = FTLRegressor(encoder, solver="sparse", ridge=RIDGE).partial_fit(X, Y)
    Phi = encoder.transform(X)
    np.testing.assert_allclose(model.weights_, algorithm_2(Phi, Y, RIDGE), atol=1e-7)


ENCODERS = [
    LosseEncoder(6, 5, 2),
    TileEncoder(10, 5, 2),
    FourierEncoder(120),
    ReLUEncoder(120),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_dense_is_the_closed_form_and_the_recursive_form(encoder, ridge):
    X, Y = stream(400)
    model = FTLRegressor(encoder, solver="dense", ridge=ridge)
    in_batches(model, X, Y, 150)
    Phi = np.asarray(model.encoder_.transform(X).toarray()) if hasattr(
        model.encoder_.transform(X), "toarray"
    ) else model.encoder_.transform(X)  # fmt: skip
    expected = Phi @ leader(Phi, Y, ridge)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6 * np.abs(expected).max())
    if ridge > 1e-3:  # the recursion is unstable for a tiny penalty
        batches = [(Phi[i : i + 100], Y[i : i + 100]) for i in range(0, 400, 100)]
        recursive = recursive_leader(batches, ridge * 400)
        np.testing.assert_allclose(model.weights_, recursive, atol=1e-8)


def objective_ratios(model, X, Y, size):
    """The objective relative to its minimum, after every batch."""
    ratios = []
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
        n = model.n_samples_seen_
        Phi = model.encoder_.transform(X[:n])
        Phi = Phi.toarray() if hasattr(Phi, "toarray") else Phi
        best = objective(Phi, Y[:n], leader(Phi, Y[:n], model.ridge), model.ridge)
        ratios.append(objective(Phi, Y[:n], model.weights_, model.ridge) / best)
    return np.array(ratios)


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("ridge", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exact_is_within_one_percent_of_the_leader_at_all_times(encoder, ridge, dtype):
    """Through all phases: sample space, the switch at D / 2 samples, several rebuilt inverses."""
    X, Y = stream(1500)
    model = FTLRegressor(encoder, solver="exact", ridge=ridge, dtype=dtype)
    assert objective_ratios(model, X, Y, 30).max() <= 1.01


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("ridge", [1e-5, 1e-3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.usefixtures("packed")
def test_exact_is_within_one_percent_when_it_must_iterate(encoder, ridge, dtype):
    X, Y = stream(600)
    model = FTLRegressor(encoder, solver="exact", ridge=ridge, dtype=dtype)
    assert objective_ratios(model, X, Y, 50).max() <= 1.01


def test_a_fitted_encoder_is_copied():
    X, Y = stream(100)
    encoder = LosseEncoder(5, 5, 2).fit(X)
    model = FTLRegressor(encoder, ridge=1e-5).fit(X, Y)
    before = model.predict(X)
    encoder.fit(10 * X)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_exact_takes_batches_of_any_size(size):
    X, Y = stream(1000, n_outputs=1)
    model = FTLRegressor(LosseEncoder(4, 6, 2), solver="exact", ridge=1e-5)
    in_batches(model, X[:600] if size == 1 else X, Y[:600] if size == 1 else Y, size)
    n = model.n_samples_seen_
    Phi = model.encoder_.transform(X[:n]).toarray()
    best = objective(Phi, Y[:n], leader(Phi, Y[:n], RIDGE), RIDGE)
    assert objective(Phi, Y[:n], model.weights_, RIDGE) <= 1.01 * best


def test_auto_is_exact_for_moderate_models():
    X, Y = stream(900)
    models = [FTLRegressor(LosseEncoder(6, 6, 2), solver=s, ridge=1e-5) for s in ("auto", "exact")]
    for model in models:
        in_batches(model, X, Y, 50)
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)


@pytest.mark.usefixtures("packed")
def test_auto_predicts_better_than_algorithm_2_in_large_models():
    X, Y = stream(1600, n_features=6)
    errors = {}
    for solver in ("auto", "sparse"):
        model = FTLRegressor(LosseEncoder(12, 10, 2), solver=solver, ridge=1e-5).partial_fit(
            X[:800], Y[:800]
        )
        seen = []
        for start in range(800, 1600, 50):
            rows = slice(start, start + 50)
            seen.append(((model.predict(X[rows]) - Y[rows]) ** 2).mean())
            model.partial_fit(X[rows], Y[rows])
        errors[solver] = np.median(seen)
    assert errors["auto"] < errors["sparse"]


@pytest.mark.usefixtures("packed")
def test_small_batches_of_large_models_iterate_no_more_than_large_ones(monkeypatch):
    X, Y = stream(1600, n_features=6)
    monkeypatch.setattr("losse.ftl.solvers.conjugate.PER_ROW", 2 * 1452**2 * 8 / 99)
    began = []
    iterate = conjugate.iterate
    monkeypatch.setattr(conjugate, "iterate", lambda *a: began.append(1) or iterate(*a))
    errors = {}
    for size in (10, 100):
        began.clear()
        model = FTLRegressor(LosseEncoder(12, 10, 2), ridge=1e-5).fit(X[:200], Y[:200])
        in_batches(model, X[200:1400], Y[200:1400], size)
        assert len(began) == 13  # once at the start, then for every 100 rows
        errors[size] = ((model.predict(X[1400:]) - Y[1400:]) ** 2).mean()
    assert errors[10] < 1.1 * errors[100]


@given(ratio=st.floats(0.2, 5), seed=st.integers(0, 100), penalty=st.floats(1e-3, 10))
def test_a_wrong_ridge_costs_at_most_what_the_bound_says(ratio, seed, penalty):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(12, 8)) * np.logspace(-2, 1, 8)
    Y = rng.normal(size=(12, 2))
    right, wrong = leader(Phi, Y, penalty / 12), leader(Phi, Y, ratio * penalty / 12)
    best = objective(Phi, Y, right, penalty / 12)
    excess = objective(Phi, Y, wrong, penalty / 12) / best - 1
    assert excess <= ridge_excess(ratio) + 1e-9


@pytest.mark.parametrize("encoder", [LosseEncoder(5, 5), AdaptiveEncoder(n_grids=5)])
@pytest.mark.parametrize("columns", [1, 8])  # whole cache lines, too
def test_a_prediction_does_not_depend_on_the_other_rows(encoder, columns):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(9000, 3))  # more than are predicted together
    targets = np.sin(inputs[:300] @ rng.normal(size=(3, columns)))
    model = FTLRegressor(encoder).fit(inputs[:300], targets)
    whole = model.predict(inputs)
    parts = np.concatenate([model.predict(part) for part in np.array_split(inputs, 7)])
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-12)
    whole[:] = 0.0  # the caller's own
    assert np.abs(model.predict(inputs[:5])).min() > 0
