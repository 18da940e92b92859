"""Errors of predictions before learning: the model's own account equals one kept by hand."""

import numpy as np
import pytest

from losse import FTLRegressor
from tests.ftl.models import ENCODERS, RIDGE, X, Y

BATCHES = [slice(start, start + 30) for start in range(0, 240, 30)]


def by_hand(discount=1.0):
    model = FTLRegressor(ENCODERS[0], ridge=RIDGE, discount=discount)
    errors = [Y[BATCHES[0]] ** 2]
    model.partial_fit(X[BATCHES[0]], Y[BATCHES[0]])
    for rows in BATCHES[1:]:
        errors.append((model.predict(X[rows]) - Y[rows]) ** 2)
        model.partial_fit(X[rows], Y[rows])
    return model, np.array(errors)


def test_curve_and_mean_are_those_of_predictions_before_learning():
    model, errors = by_hand()
    curve = model.prequential_
    np.testing.assert_array_equal(curve.n_samples, [60, 90, 120, 150, 180, 210, 240])
    np.testing.assert_allclose(curve.mse, errors[1:].mean(axis=1))
    np.testing.assert_allclose(curve.nmse[-1], (errors[-1].mean(axis=0) / Y.var(axis=0)).mean())
    mean = errors[1:].reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(model.prequential_error_, (mean / Y.var(axis=0)).mean())


@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_regret_is_what_the_weights_of_today_would_have_saved(discount):
    model, errors = by_hand(discount)
    weights = discount ** np.arange(239.0, -1.0, -1.0)
    today = weights @ (model.predict(X) - Y) ** 2
    np.testing.assert_allclose(model.regret_, weights @ errors.reshape(240, 3) - today, rtol=1e-6)


def test_weighted_rows_count_by_their_weight():
    twice = FTLRegressor(ENCODERS[0], ridge=RIDGE).fit(X[:60], Y[:60])
    once = FTLRegressor(ENCODERS[0], ridge=RIDGE).fit(X[:60], Y[:60])
    twice.partial_fit(X[[60, 60, 61]], Y[[60, 60, 61]])
    once.partial_fit(X[60:62], Y[60:62], [2.0, 1.0])
    assert once.prequential_error_ == pytest.approx(twice.prequential_error_)


def test_a_long_curve_keeps_few_points():
    model = FTLRegressor(ENCODERS[0], ridge=RIDGE, solver="sparse")
    for k in range(700):
        model.partial_fit(X[k % 240][None], Y[k % 240][None])
    curve = model.prequential_
    assert 100 <= len(curve.n_samples) <= 256
    assert (np.diff(curve.n_samples) > 0).all()
    assert np.isfinite(curve.nmse).all()


def test_outputs_that_never_vary_do_not_count():
    flat = np.column_stack([Y[:, 0], np.full(240, 7.0)])
    model = FTLRegressor(ENCODERS[0], ridge=RIDGE)
    for rows in BATCHES:
        model.partial_fit(X[rows], flat[rows])
    error = ((model.prequential_.mse[-1, 0]) / Y[:, 0].var()).mean()
    assert model.prequential_.nmse[-1] == pytest.approx(error)


def test_before_learning_there_is_no_account():
    for name in ("prequential_", "prequential_error_", "regret_", "ridge_"):
        with pytest.raises(AttributeError, match="only after fit"):
            getattr(FTLRegressor(), name)
    assert np.isnan(FTLRegressor(ENCODERS[0]).fit(X, Y).prequential_error_)
