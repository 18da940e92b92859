"""Gradient steps on a cascade."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor
from losse.encoders import polish as module
from losse.encoders.cascade import apply_cascade, fit_cascade
from losse.encoders.polish import held_out, polish
from losse.work import UNIT, finished


@pytest.fixture(scope="module")
def smooth():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2400, 4))
    return Z, deep(Z)


def deep(Z):
    """Functions of functions, which one layer does not represent well."""
    inner = np.sin(Z[:, 0] + Z[:, 1]) + Z[:, 2] * np.abs(Z[:, 3])
    return np.sqrt(2) * np.c_[np.sin(2 * inner), np.cos(inner)]


def stages_of(Z, Q, n_stages=2):
    seen = ~held_out(len(Z))
    count = np.count_nonzero(seen)
    fitting = fit_cascade(Z[seen], Q[seen], np.ones(count), np.arange(count), n_stages, rng())
    lead, stages, *_ = finished(fitting)
    assert lead is None
    return stages


def rng():
    return np.random.default_rng(1)


def polished(stages, Z, Q, weights=None):
    weights = np.ones(len(Z)) if weights is None else weights
    return finished(polish(stages, Z, Z.shape[1], Q, weights, rng()))


def error(stages, Z, Q):
    return float(((apply_cascade(None, stages, Z)[:, Z.shape[1] :] - Q) ** 2).mean())


def test_gradients_are_those_of_the_error(smooth, monkeypatch):
    Z, Q = (part.astype(np.float32) for part in smooth)
    weights = np.linspace(0.5, 1.5, len(Z)).astype(np.float32)
    descent = module._Descent(stages_of(*smooth), Z, Z.shape[1], Q, weights)
    rows = np.arange(64)
    total = weights[rows].sum() / len(rows)
    monkeypatch.setattr(module, "adam_step", lambda *given: None)
    descent.step(rows, 0.0)
    w, _, _, gradient = descent._flat
    largest = np.argsort(-abs(gradient))[:2000]
    for k in rng().choice(largest, 12, replace=False):
        before, sides = w[k], []
        for change in (2e-3, -2e-3):
            w[k] = before + change
            sides.append(finished(descent.error(rows)) * total)
        w[k] = before
        assert (sides[0] - sides[1]) / 4e-3 == pytest.approx(gradient[k], rel=0.03, abs=2e-4)


def test_steps_lower_the_error_of_new_rows(smooth):
    Z, Q = smooth
    stages = stages_of(Z, Q)
    new = np.random.default_rng(5).normal(size=(500, 4))
    assert error(polished(stages, Z, Q), new, deep(new)) < 0.7 * error(stages, new, deep(new))


def test_noise_is_not_learned(smooth):
    Z, _ = smooth
    noise = rng().normal(size=(len(Z), 2))
    stages = stages_of(Z, noise)
    held = held_out(len(Z))
    kept = polished(stages, Z, noise)
    assert error(kept, Z[held], noise[held]) <= error(stages, Z[held], noise[held]) + 1e-6


def test_few_rows_and_no_stages_are_left_alone(smooth):
    Z, Q = smooth
    stages = stages_of(Z[:900], Q[:900])
    assert polished(stages, Z[:900], Q[:900]) == stages
    assert polished([], Z, Q) == []


def test_rows_without_weight_do_not_matter(smooth):
    Z, Q = smooth
    stages, spoilt = stages_of(Z, Q), Q.copy()
    weights = np.ones(len(Z))
    spoilt[::7], weights[::7] = 100.0, 0.0
    one, other = (polished(stages, Z, targets, weights) for targets in (Q, spoilt))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_units_of_work_are_small_and_the_same_in_every_run(smooth):
    Z, Q = smooth
    stages = stages_of(Z, Q)
    costs = [list(polish(stages, Z, Z.shape[1], Q, np.ones(len(Z)), rng())) for _ in range(2)]
    assert costs[0] == costs[1]
    assert max(costs[0]) < 2 * UNIT


def test_a_polished_encoder_makes_a_better_leader(smooth, monkeypatch):
    new = np.random.default_rng(5).normal(size=(500, 4))
    errors = []
    for least in (module.LEAST_ROWS, 10**9):
        monkeypatch.setattr(module, "LEAST_ROWS", least)
        model = FTLRegressor(AdaptiveEncoder(20, n_stages=2)).fit(*smooth)
        errors.append(float(((model.predict(new) - deep(new)) ** 2).mean()))
    assert errors[0] < errors[1]


def test_held_out_rows_that_are_long_past_decide_nothing(smooth):
    Z, Q = smooth
    stages, ages = stages_of(Z, Q), np.arange(len(Z))[::-1]
    assert not held_out(len(Z))[-100:].all()
    late = 0.6 ** np.where(held_out(len(Z)), ages + 500, ages).clip(max=1000)
    assert polished(stages, Z, Q, late) == stages
    model = FTLRegressor(AdaptiveEncoder(5, n_stages=1, warm_up=1400), discount=0.6)
    assert np.isfinite(model.fit(Z[:1400], Q[:1400]).predict(Z)).all()
