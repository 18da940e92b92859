"""Encoders that are built again from the past: rows that the model keeps, or a source."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor
from tests.ftl.models import X, Y, memory

ENCODER = AdaptiveEncoder(6, 3, n_stages=0, warm_up=60)


def learn(model, last, seen=None):
    for start in range(0, last, 20):
        rows = slice(start, start + 20)
        if seen is not None:
            seen.append(rows)
        model.partial_fit(X[rows], Y[rows])
    return model


def test_a_source_of_all_rows_makes_a_model_as_good_as_new():
    seen, times = [], []

    def source():
        times.append(seen[-1].stop)
        return X[: seen[-1].stop], Y[: seen[-1].stop]

    model = learn(FTLRegressor(ENCODER, ridge=1e-3, solver="dense", past=source), 240, seen)
    assert times == [120, 240]
    assert model.n_samples_seen_ == 240
    scratch = FTLRegressor(model.encoder_, ridge=1e-3, solver="dense").fit(X, Y)
    np.testing.assert_allclose(model.predict(X), scratch.predict(X), atol=1e-9)


def test_a_source_of_some_rows_counts_as_much_as_all():
    model = FTLRegressor(ENCODER, ridge=1e-3, past=lambda: (X[:50], Y[:50]))
    assert memory(learn(model, 120)).total == pytest.approx(120)
    weighted = FTLRegressor(ENCODER, ridge=1e-3, past=lambda: (X[:50], Y[:50], np.arange(50.0)))
    assert memory(learn(weighted, 120)).total == pytest.approx(120)


def test_kept_rows_are_used_up_to_their_number():
    kept = learn(FTLRegressor(ENCODER, ridge=1e-3, past=200), 240)
    frozen = learn(FTLRegressor(ENCODER, ridge=1e-3), 240)
    assert (kept._learner._built, frozen._learner._built) == (120, 60)
    assert kept._learner._kept is None


def test_a_source_that_has_nothing_puts_the_build_off():
    alone, later = FTLRegressor(ENCODER, ridge=1e-3), FTLRegressor(ENCODER, ridge=1e-3)
    later.set_params(past=lambda: None)
    for model in (alone, later):
        learn(model, 120)
    assert np.array_equal(later.predict(X), alone.predict(X))
    later.set_params(past=lambda: (X[:140], Y[:140]))
    later.partial_fit(X[120:140], Y[120:140])
    assert not later.encoder_.same_features(alone.encoder_)


@pytest.mark.parametrize(
    ("past", "error", "message"),
    [
        ("all", TypeError, "past='all' must be None, a number of rows"),
        (0, ValueError, "past=0"),
        (lambda: (X,), ValueError, r"past\(\) returned 1 arrays"),
        (lambda: (X[:, :2], Y), ValueError, "features"),
    ],
)
def test_nonsense_is_refused(past, error, message):
    with pytest.raises(error, match=message):
        learn(FTLRegressor(ENCODER, ridge=1e-3, past=past), 120)
