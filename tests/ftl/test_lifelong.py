"""Unlearning, merging and discounting are exact: as if the model had been trained that way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from losse import FTLRegressor, LosseEncoder
from losse.ftl import merge_all
from tests.ftl.models import (
    ENCODERS,
    RIDGE,
    SOLVERS,
    X,
    Y,
    assert_identical,
    in_batches,
    large_models,
    like,
    memory,
    models,
    parts,
)
from tests.ftl.reference import leader, objective

sizes = st.integers(1, 90)
cuts = st.integers(1, 239)


def features(model):
    Phi = model.encoder_.transform(X)
    return Phi.toarray() if hasattr(Phi, "toarray") else Phi


def assert_leader(model, weights, large=False):
    """The model predicts as the minimiser over all rows with these weights."""
    Phi = features(model)
    mean = np.average(Y, axis=0, weights=weights) if model.center is True else 0.0
    np.testing.assert_allclose(model.intercept_, mean * np.ones(Y.shape[1]), atol=1e-9)
    best = leader(Phi, Y - mean, RIDGE, weights)
    if large and model.solver != "dense":  # what conjugate gradients promise
        reached = objective(Phi, Y - mean, model.weights_, RIDGE, weights)
        assert reached <= 1.01 * objective(Phi, Y - mean, best, RIDGE, weights)
        return
    expected = Phi @ best + mean
    np.testing.assert_allclose(model.predict(X), expected, atol=2e-6 * np.abs(expected).max())


@given(model=models(), cut=cuts, size=sizes, once=st.booleans(), large=st.booleans())
def test_unlearning_leaves_the_leader_of_the_rest(model, cut, size, once, large):
    with large_models(large):
        in_batches(model, range(240), size)
        order = np.random.default_rng(cut).permutation(240)
        gone, kept = order[:cut], order[cut:]
        for some in [gone] if once else np.array_split(gone, 3):
            if len(some):
                model.unlearn(X[some], Y[some])
        assert model.n_samples_seen_ == len(kept)
        weights = np.zeros(240)
        weights[kept] = 1
        assert_leader(model, weights, large)


@given(model=models(), size=sizes, shards=st.integers(1, 5), large=st.booleans())
def test_merged_shards_equal_one_model(model, size, shards, large):
    with large_models(large):
        rows = np.random.default_rng(size).permutation(240)
        learned = [in_batches(like(model), some, size) for some in np.array_split(rows, shards)]
        before = [parts(shard) for shard in learned]
        merged = merge_all(iter(learned))
        assert merged.n_samples_seen_ == 240
        assert merged.get_params(deep=False) == model.get_params(deep=False)
        assert_leader(merged, np.ones(240), large)
        for shard, then in zip(learned, before, strict=True):  # merging changes no other model
            for name, value in parts(shard).items():
                np.testing.assert_array_equal(value, then[name])
        if shards == 1:
            return
        for shard in learned[1:]:
            learned[0].merge(shard)
        assert_leader(learned[0], np.ones(240), large)
        assert_leader(in_batches(learned[0], range(10), 10), np.repeat([2, 1], [10, 230]), True)


@given(
    model=models(discount=0.97),
    cuts=st.tuples(cuts, cuts).map(sorted),
    size=sizes,
    large=st.booleans(),
)
def test_discount_then_merge_then_unlearn_then_save(model, cuts, size, large, tmp_path_factory):
    """Two discounted models become one, forget some of their rows, and go to disk and back."""
    first, second = cuts
    path = tmp_path_factory.mktemp("models") / "model"
    with large_models(large):
        in_batches(model, range(first), size)
        other = like(model)
        if second > first:
            in_batches(other, range(first, second), size)
            model.merge(other)
        weights = np.zeros(240)
        weights[:first] = 0.97 ** np.arange(first - 1.0, -1, -1)
        weights[first:second] = 0.97 ** np.arange(second - first - 1.0, -1, -1)
        late = np.arange(max(0, first - 7), first)
        model.unlearn(X[late], Y[late])  # the latest of the first stream
        weights[late] = 0
        if second - first > 9:
            old = np.arange(first, first + 4)
            model.unlearn(X[old], Y[old], age=second - 1 - old)
            weights[old] = 0
        model.save(path)
        loaded = FTLRegressor.load(path)
        assert_identical(loaded, model)
        if weights.any():
            assert_leader(loaded, weights, large)
        else:
            assert (loaded.predict(X) == loaded.intercept_).all()
            assert model.center or not loaded.intercept_.any()


@given(model=models(), weights=st.lists(st.integers(0, 3), min_size=240, max_size=240))
@settings(max_examples=15)
def test_sample_weights_are_unlearned_as_they_were_learned(model, weights):
    weights = np.array(weights, dtype=float)
    weights[0] = 1.0
    model.fit(X, Y, sample_weight=weights)
    gone = weights.copy()
    gone[120:] = 0
    model.unlearn(X, Y, sample_weight=gone)
    if (weights - gone).any():
        assert_leader(model, weights - gone)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_that_unlearned_everything_is_new(solver, large):
    with large_models(large):
        model = FTLRegressor(ENCODERS[0], solver=solver, ridge=1e-5).partial_fit(X, Y)
        model.unlearn(X[:100], Y[:100]).unlearn(X[100:], Y[100:])
        mean, std = model.predict(X, return_std=True)
        assert not mean.any()
        assert np.isinf(std).all()
        assert model.n_samples_seen_ == 0
        again = model.partial_fit(X[:50], Y[:50]).weights_
        new = FTLRegressor(ENCODERS[0], solver=solver, ridge=1e-5).partial_fit(X[:50], Y[:50])
        np.testing.assert_array_equal(again, new.weights_)


@pytest.mark.parametrize("solver", ["exact", "dense"])
def test_a_window_slides(solver):
    """Learn one row, unlearn another, for long: rounding does not build up."""
    model = FTLRegressor(ENCODERS[0], solver=solver, ridge=RIDGE).partial_fit(X[:100], Y[:100])
    for _ in range(3):
        for k in range(240):
            new, old = (k + 100) % 240, k
            model.partial_fit(X[[new]], Y[[new]]).unlearn(X[[old]], Y[[old]])
    assert_leader(model, np.repeat([1, 0], [100, 140]))


def test_merging_a_model_with_itself_doubles_every_weight():
    model = FTLRegressor(ENCODERS[0], solver="dense", ridge=RIDGE).fit(X, Y)
    before = memory(model).A.copy()
    model.merge(model)
    np.testing.assert_array_equal(memory(model).A, 2 * before)
    assert model.n_samples_seen_ == 480
    assert_leader(model, np.full(240, 2.0))


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_was_not_learned_cannot_be_unlearned(solver):
    model = FTLRegressor(ENCODERS[0], solver=solver, ridge=1e-5).fit(X[:200], Y[:200])
    elsewhere = -X[200:210] + 1.0
    before = parts(model)
    before = {name: np.copy(value) for name, value in before.items()}
    for bad_X, bad_Y, weight, message in [
        (elsewhere, Y[:10], None, "has not learned all of these rows"),
        (X[:10], Y[:10] + 100.0, None, "has not learned all of these rows"),
        (X[:10], Y[:10], 30.0, "has not learned all of these rows"),
        (X, Y, None, "240 rows to unlearn, but only 200 were learned"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.unlearn(bad_X, bad_Y, sample_weight=weight)
        for name, value in parts(model).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
    model.unlearn(X[:10], Y[:10])
    with pytest.raises(ValueError, match="has not learned"):  # each row once
        model.unlearn(np.repeat(X[:10], 8, axis=0), np.repeat(Y[:10], 8, axis=0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
def test_large_models_refuse_a_row_that_was_unlearned_before(encoder, solver, dtype):
    """Without it A has a negative direction, along which conjugate gradients would run away."""
    with large_models():
        model = FTLRegressor(encoder, solver=solver, ridge=RIDGE, dtype=dtype).fit(X[:8], Y[:8])
        model.unlearn(X[7:8], Y[7:8])
        before = {name: np.copy(value) for name, value in parts(model).items()}
        with pytest.raises(ValueError, match="has not learned all of these rows"):
            model.unlearn(X[7:8], Y[7:8])
        for name, value in parts(model).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)


def other_model(**changes):
    settings = {"encoder": ENCODERS[0], "X": X, "Y": Y} | changes
    return FTLRegressor(settings["encoder"], ridge=1e-5).fit(settings["X"], settings["Y"])


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (lambda: other_model(encoder=LosseEncoder(5, 5, 2, seed=1)), ValueError, "not the same"),
        (lambda: other_model(encoder=LosseEncoder(5, 6, 2)), ValueError, "not the same"),
        (lambda: other_model(encoder=ENCODERS[1]), ValueError, "not the same"),
        (
            lambda: other_model(encoder=LosseEncoder(5, 5, 2), X=X + 1.0),
            ValueError,
            "fit one encoder and pass it",
        ),
        (lambda: other_model(Y=Y[:, :2]), ValueError, "other has 2 output"),
        (lambda: other_model(Y=Y[:, 0]), ValueError, "1-d"),
        (lambda: FTLRegressor(), ValueError, "not fitted yet"),
        (lambda: "a model", TypeError, "other='a model' is not an FTLRegressor"),
    ],
)
def test_only_models_of_the_same_features_merge(other, error, message):
    model = other_model()
    before = {name: np.copy(value) for name, value in parts(model).items()}
    with pytest.raises(error, match=message):
        model.merge(other())
    for name, value in parts(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_nothing_to_merge():
    with pytest.raises(ValueError, match="models is empty"):
        merge_all([])
    with pytest.raises(ValueError, match="not fitted yet"):
        FTLRegressor().merge(other_model())


@pytest.mark.parametrize("n", [60, 200])
def test_an_interrupted_batch_is_not_lost(n, monkeypatch):
    """Ctrl-C while the weights are renewed: the memories have the batch, the next call goes on."""
    model = FTLRegressor(ENCODERS[0], solver="exact", ridge=RIDGE).partial_fit(X[:n], Y[:n])

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "cholesky", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[n : n + 20], Y[n : n + 20])
    assert model.n_samples_seen_ == n + 20
    model.partial_fit(X[n + 20 :], Y[n + 20 :])
    Phi = features(model)
    best = objective(Phi, Y, leader(Phi, Y, RIDGE), RIDGE)
    assert objective(Phi, Y, model.weights_, RIDGE) <= 1.01 * best


def test_rows_of_a_merged_model_of_single_precision_can_be_unlearned():
    encoder = LosseEncoder(5, 5, 2, scaling=(-3, 3)).fit(X)
    options = {"solver": "sparse", "ridge": 0.01, "center": False}
    for k in range(4, 40):  # some of whose products are rounded down
        model = FTLRegressor(encoder, **options).fit(X[:4], Y[:4])
        model.merge(FTLRegressor(encoder, dtype="float32", **options).fit(X[[k]], Y[[k]]))
        model.unlearn(X[[k]], Y[[k]])
        rest = FTLRegressor(encoder, **options | {"solver": "dense"}).fit(X[:4], Y[:4])
        np.testing.assert_allclose(model.predict(X), rest.predict(X), atol=1e-4)
