"""``ridge="auto"``: the ridge that predicts best, chosen on the way."""

import numpy as np
import pytest

from losse import FTLRegressor, LosseEncoder
from tests.ftl.models import SOLVERS, assert_identical, large_models
from tests.ftl.models import X as STREAM
from tests.ftl.models import Y as TARGETS

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(600, 2))
CLEAN = np.sin(X[:, :1] + X[:, 1:])
NOISY = CLEAN + 2.0 * rng.normal(size=CLEAN.shape)
ENCODER = LosseEncoder(10, 6, scaling=(-3, 3)).fit(X)


def learn(Y, size=20, **parameters):
    model = FTLRegressor(ENCODER, **parameters)
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
    return model


@pytest.mark.parametrize("solver", SOLVERS)
def test_noise_calls_for_more_ridge(solver):
    clean, noisy = learn(CLEAN, solver=solver), learn(NOISY, solver=solver)
    assert noisy.ridge_ > 30 * clean.ridge_


def test_large_models_choose_too():
    with large_models():
        clean, noisy = learn(CLEAN), learn(NOISY)
    assert noisy.ridge_ > 30 * clean.ridge_


@pytest.mark.parametrize("Y", [CLEAN, NOISY], ids=["clean", "noisy"])
def test_no_fixed_ridge_predicts_much_better(Y):
    fixed = [learn(Y, ridge=ridge).prequential_error_ for ridge in (1e-6, 1e-4, 1e-2, 1.0)]
    assert learn(Y).prequential_error_ < 1.15 * min(fixed)


def test_weights_are_those_of_the_leader_for_the_chosen_ridge():
    model = learn(NOISY, solver="exact")
    best = FTLRegressor(ENCODER, solver="dense", ridge=model.ridge_).fit(X, NOISY)
    assert ((model.predict(X) - best.predict(X)) ** 2).mean() < 0.01


def test_one_call_chooses_as_a_stream_does():
    assert learn(NOISY, size=600).ridge_ == learn(NOISY, size=50).ridge_


def test_a_given_ridge_is_kept():
    assert learn(NOISY, ridge=0.25).ridge_ == 0.25


@pytest.mark.parametrize("discount", [1.0, 0.98])
def test_a_saved_contest_goes_on_bit_for_bit(discount, tmp_path):
    model = FTLRegressor(ENCODER, discount=discount).partial_fit(X[:200], NOISY[:200])
    model.save(tmp_path / "model")
    loaded = FTLRegressor.load(tmp_path / "model")
    for each in (model, loaded):
        for start in range(200, 600, 30):
            each.partial_fit(X[start : start + 30], NOISY[start : start + 30])
    assert_identical(model, loaded)
    assert model.ridge_ == loaded.ridge_


def test_merged_and_unlearned_rows_begin_a_new_round():
    encoder = LosseEncoder(5, 5).fit(STREAM)
    model = FTLRegressor(encoder).fit(STREAM, TARGETS)
    model.merge(FTLRegressor(encoder).fit(STREAM, TARGETS)).unlearn(STREAM[:9], TARGETS[:9])
    model.partial_fit(STREAM, TARGETS)
    best = FTLRegressor(encoder, solver="dense", ridge=model.ridge_)
    best.fit(np.vstack([STREAM] * 3)[9:], np.vstack([TARGETS] * 3)[9:])
    assert ((model.predict(STREAM) - best.predict(STREAM)) ** 2).mean() < 0.01
