"""A model whose encoder is learned from the first rows: what changes at a build, and what not."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse.ftl import merge_all
from losse.ftl.memories.base import NotLearnedError
from tests.ftl.models import X, Y, assert_identical, memory

ENCODER = AdaptiveEncoder(6, 3, n_stages=1, warm_up=160)


def model(**parameters):
    return FTLRegressor(ENCODER, **{"ridge": 1e-3} | parameters)


def learn(model, first, last, size=20):
    for start in range(first, last, size):
        rows = slice(start, min(start + size, last))
        model.partial_fit(X[rows], Y[rows])
    return model


def test_predicts_from_the_first_row_on():
    one = model().partial_fit(X[:1], Y[:1])  # and no warning of a scaling frozen on one row
    assert np.isfinite(one.predict(X)).all()
    assert isinstance(one.encoder_, LosseEncoder)


def test_is_final_after_the_warm_up_and_drops_its_rows():
    warm = learn(model(), 0, 140)
    assert warm._learner._kept is not None
    learn(warm, 140, 160)
    assert isinstance(warm.encoder_, AdaptiveEncoder)
    assert warm._learner._kept is None
    final = warm.encoder_
    assert learn(warm, 160, 240).encoder_ is final


@pytest.mark.parametrize(
    "parameters", [{}, {"discount": 0.99}, {"solver": "sparse"}, {"past": 500}]
)
def test_nothing_learned_is_lost_at_a_build(parameters):
    """The memories are those of a model that had the final encoder from the start."""
    built = learn(model(center=False, **parameters), 0, 240)
    scratch = FTLRegressor(built.encoder_, **{"ridge": 1e-3, "center": False} | parameters)
    learn(scratch, 0, 240)
    assert built.n_samples_seen_ == 240
    mine, theirs = memory(built), memory(scratch)
    for name in ("A", "B", "squares"):
        one = getattr(mine, name) / built._learner.unit
        other = getattr(theirs, name) / scratch._learner.unit
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * np.abs(other).max())


def test_weights_count_in_the_encoder_and_the_memories():
    weights = np.where(np.arange(160) < 80, 1.0, 3.0)
    weighted = model(solver="dense").partial_fit(X[:160], Y[:160], weights)
    again = FTLRegressor(weighted.encoder_, ridge=1e-3, solver="dense")
    again.fit(X[:160], Y[:160], weights)
    np.testing.assert_allclose(weighted.predict(X), again.predict(X), atol=1e-8)


@pytest.mark.parametrize("n", [1, 30, 150, 160, 200])
@pytest.mark.parametrize("parameters", [{}, {"discount": 0.99, "ridge": "auto"}, {"past": 300}])
def test_a_saved_model_goes_on_bit_for_bit(n, parameters, tmp_path):
    saved = learn(model(**parameters), 0, n, size=10)
    saved.save(tmp_path / "model")
    loaded = FTLRegressor.load(tmp_path / "model")
    assert_identical(saved, loaded)
    assert_identical(learn(saved, n, 240), learn(loaded, n, 240))
    assert (saved.regret_ == loaded.regret_).all()
    assert saved.ridge_ == loaded.ridge_


@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_rows_unlearned_in_the_warm_up_never_come_back(discount):
    kept = learn(model(discount=discount, solver="dense"), 0, 100)
    kept.unlearn(X[80:100], Y[80:100])
    assert (kept.n_samples_seen_, len(kept._learner._kept.rows)) == (80, 80)
    learn(kept, 100, 240)
    left = sum(discount ** (239 - k) for k in range(240) if not 80 <= k < 100)
    assert memory(kept).total / kept._learner.unit == pytest.approx(left)


def test_rows_not_learned_cannot_be_unlearned_in_the_warm_up():
    warm = learn(model(), 0, 100)
    twin = learn(model(), 0, 100)
    for x, y in ((X[100:101], Y[100:101]), (X[:1], Y[1:2]), (X[[3, 3]], Y[[3, 3]])):
        with pytest.raises(NotLearnedError):
            warm.unlearn(x, y)
        assert_identical(warm, twin)


def test_unlearning_after_the_warm_up_is_exact():
    whole = learn(model(), 0, 240).unlearn(X[40:60], Y[40:60])
    rest = np.delete(np.arange(240), np.arange(40, 60))
    without = FTLRegressor(whole.encoder_, ridge=1e-3).fit(X[rest], Y[rest])
    np.testing.assert_allclose(whole.predict(X), without.predict(X), atol=0.05)


def test_models_that_share_a_final_encoder_merge():
    first = learn(model(solver="dense"), 0, 160)
    second = FTLRegressor(first.encoder_, ridge=1e-3, solver="dense").fit(X[160:], Y[160:])
    first.merge(second)
    whole = FTLRegressor(first.encoder_, ridge=1e-3, solver="dense").fit(X, Y)
    np.testing.assert_allclose(first.predict(X), whole.predict(X), atol=1e-7)


@pytest.mark.parametrize("n", [60, 160])
def test_a_model_that_still_has_its_rows_merges_into_any(n):
    other = learn(model(), 160, 240)
    merged = learn(model(), 0, n).merge(other)
    assert merged.n_samples_seen_ == n + 80
    assert (merged._learner._kept is None) == (n + 80 >= 160)
    assert merge_all([learn(model(), 0, 100), other]).n_samples_seen_ == 180


def test_a_final_model_does_not_merge_into_one_that_still_learns_its_encoder():
    final, warm = learn(model(), 0, 160), learn(model(), 160, 200)
    with pytest.raises(ValueError, match=r"other way round.*encoder=other.encoder_"):
        warm.merge(final)
    with pytest.raises(ValueError, match=r"model's encoder_ to the others"):
        final.merge(learn(model(), 60, 240))


def test_a_build_that_fails_leaves_the_model_as_it_was(monkeypatch):
    warm, twin = learn(model(), 0, 140), learn(model(), 0, 140)
    monkeypatch.setattr(AdaptiveEncoder, "freezing", None)
    with pytest.raises(TypeError):
        learn(warm, 140, 160)
    assert_identical(warm, twin)
    assert warm.prequential_error_ == twin.prequential_error_


def test_scaling_can_warm_up_too():
    """Rows kept for a plain encoder let its scaling follow, instead of the first call alone."""
    warm = FTLRegressor(LosseEncoder(5, 5), ridge=1e-3, past=64)
    learn(warm, 0, 100, size=4)
    first = FTLRegressor(LosseEncoder(5, 5).fit(X[:64]), ridge=1e-3)
    assert_identical(warm, learn(first.partial_fit(X[:64], Y[:64]), 64, 100, size=4))


@pytest.mark.parametrize("size", [1, 20])
def test_a_sorted_stream_is_followed_into_places_where_no_input_was_before(size, tmp_path):
    """Whenever a new encoder takes over, all rows that it was built from are predicted well."""
    inputs = np.linspace(-3, 3, 600)[:, None]
    targets = np.sin(2 * inputs[:, 0])

    def learn(model, first, last):
        for start in range(first, last, size):
            part = slice(start, start + size)
            built = model._learner._built if start else 0
            model.partial_fit(inputs[part], targets[part])
            if start and model._learner._built > max(built, 100):
                known = slice(model._learner._built)
                taken_over.append(np.abs(model.predict(inputs[known]) - targets[known]).max())
        return model

    taken_over = []
    model = learn(FTLRegressor(), 0, 400)
    model.save(tmp_path / "model", progress=False)
    loaded = FTLRegressor.load(tmp_path / "model", progress=False)
    for each in (model, loaded):
        learn(each, 400, 600)
    assert len(taken_over) > 2
    assert max(taken_over) < 0.1
    assert (loaded.predict(inputs) == model.predict(inputs)).all()


def test_an_encoder_is_not_built_out_of_turn_where_inputs_stay():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))  # some input is beyond three deviations in every twelfth row
    model = FTLRegressor(AdaptiveEncoder(5, 3, n_stages=0))
    for start in range(0, 400, 5):
        model.partial_fit(X[start : start + 5], X[start : start + 5, :1])
    assert model._learner._built == 125
