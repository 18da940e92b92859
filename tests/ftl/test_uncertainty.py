"""Standard deviations are those of Bayesian linear regression, and hold on real data."""

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import load_diabetes

from benchmarks.transitions import collect
from losse import FourierEncoder, FTLRegressor, LosseEncoder
from losse.ftl import merge_all
from losse.ftl.kept_rows import Rows
from losse.ftl.leader import Leader
from losse.ftl.posterior import drawn, inverse
from losse.ftl.posterior.base import used_share
from losse.ftl.settings import Settings
from losse.ftl.solvers.tracked_inverse import TrackedInverse
from losse.ftl.targets import Targets
from tests.ftl.models import ENCODERS, RIDGE, SOLVERS, X, Y, in_batches, large_models, like, models

LEVELS = np.array([0.8, 0.9, 0.95])


def closed_form(model, weights, discount=1.0):
    """Standard deviations from the formulas, with dense matrices."""
    Phi = features(model)
    A = (Phi * weights[:, None]).T @ Phi
    P = np.linalg.inv(A + RIDGE * weights.sum() * np.eye(len(A)))
    freedom = weights.sum() * (1 - used_share(weights.sum(), np.trace(A @ P), discount))
    noise = weights @ (Y - Phi @ model.weights_ - model.intercept_) ** 2 / freedom
    return np.sqrt(noise * (1 + np.einsum("ij,jk,ik->i", Phi, P, Phi))[:, None])


def features(model):
    Phi = model.encoder_.transform(X)
    return Phi.toarray() if hasattr(Phi, "toarray") else Phi


@given(model=st.one_of(models(), models(discount=0.97)), size=st.integers(1, 100))
def test_the_formula(model, size):
    in_batches(model, range(240), size)
    weights = model.discount ** np.arange(239.0, -1, -1)
    _, std = model.predict(X, return_std=True)
    expected = closed_form(model, weights, model.discount)
    np.testing.assert_allclose(std, expected, rtol=1e-6)


@given(
    model=st.one_of(models(), models(discount=0.99)),
    size=st.integers(1, 40),
    asked=st.integers(20, 200),
)
@settings(max_examples=40)
def test_deviations_follow_what_is_learned(model, size, asked):
    """From batch to batch, within the bounds of what may lag: ridge and noise, a little."""
    for first in range(0, 240, size):
        model.partial_fit(X[first : first + size], Y[first : first + size])
        if first >= asked:
            model.predict(X[:3], return_std=True)
    _, std = model.predict(X, return_std=True)
    weights = model.discount ** np.arange(239.0, -1, -1)
    expected = closed_form(model, weights, model.discount)
    np.testing.assert_allclose(std, expected, rtol=0.1)


@given(model=models(), size=st.integers(20, 100))
@settings(max_examples=10)
def test_large_models_iterate_to_it(model, size):
    with large_models():
        in_batches(model, range(240), size)
        _, std = model.predict(X[:40], return_std=True)
    expected = closed_form(model, np.ones(240))[:40]
    np.testing.assert_allclose(std / expected, (std / expected).mean() * np.ones(std.shape), 1e-2)
    np.testing.assert_allclose(std, expected, rtol=0.15)  # the trace is estimated at random


def test_merging_and_unlearning_bring_the_same_deviations():
    model = FTLRegressor(ENCODERS[0], solver="dense", ridge=1e-5).fit(X, Y)
    shards = [like(model).fit(X[k::3], Y[k::3]) for k in range(3)]
    more = merge_all(shards).partial_fit(X[:30] * 0.9, Y[:30])
    more.unlearn(X[:30] * 0.9, Y[:30])
    np.testing.assert_allclose(more.predict(X, True)[1], model.predict(X, True)[1], rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_learning_makes_it_surer_where_it_learned(solver):
    model = FTLRegressor(LosseEncoder(10, 5, 2, scaling=(-3, 3)), solver=solver, ridge=1e-5)
    rng = np.random.default_rng(0)
    seen = rng.uniform(-2.5, -0.5, size=(300, 2))
    elsewhere = -seen
    y = rng.normal(size=300)
    model.fit(seen, y)
    _, here = model.predict(seen, return_std=True)
    _, there = model.predict(elsewhere, return_std=True)
    assert np.median(there) > 3 * np.median(here)
    model.partial_fit(elsewhere, y)
    assert np.median(model.predict(elsewhere, return_std=True)[1]) < 1.5 * np.median(here)


@contextmanager
def counted_factorisations(form):
    """A list that grows with every factorisation that a form of the posterior asks for."""
    made = []
    cholesky = form.ridge_cholesky
    with patch.object(form, "ridge_cholesky", lambda *of: made.append(of) or cholesky(*of)):
        yield made


def test_asking_costs_no_new_inverse_after_every_row():
    model = FTLRegressor(LosseEncoder(10, 5, 2), solver="sparse", ridge=1e-5).fit(X[:200], Y[:200])
    with counted_factorisations(inverse) as made:
        for row in range(200, 230):
            model.partial_fit(X[row : row + 1], Y[row : row + 1])
            model.predict(X[:1], return_std=True)
    assert len(made) == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_centred_row_says_nothing_of_the_noise(solver):
    """It is its own mean, so that nothing is left of it."""
    model = FTLRegressor(
        LosseEncoder(5, 4, 2, scaling=(-3, 3)), ridge=RIDGE, solver=solver, center=True
    )
    model.partial_fit(X[:1], Y[:1])
    assert np.isinf(model.predict(X[:3], return_std=True)[1]).all()
    assert np.isinf(model.predict_interval(X[:3], 0.9)).all()
    model.partial_fit(X[1:2], Y[1:2])
    assert np.isfinite(model.predict(X[:3], return_std=True)[1]).all()


def test_shapes_follow_the_targets():
    model = FTLRegressor(ENCODERS[0], ridge=1e-5).fit(X, Y[:, 0])
    mean, std = model.predict(X[:5], return_std=True)
    assert mean.shape == std.shape == (5,)
    assert (std > 0).all()
    np.testing.assert_array_equal(mean, model.predict(X[:5]))


def coverage(model, X, Y, folds):
    """Share of held-out targets inside the central intervals of these levels."""
    scores = []
    for seed in range(folds):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = np.split(order, [3 * len(X) // 4])
        mean, std = like(model).fit(X[train], Y[train]).predict(X[test], return_std=True)
        scores.append(np.abs(Y[test] - mean) / std)
    return (np.concatenate(scores)[..., None] < norm.ppf(0.5 + LEVELS / 2)).reshape(-1, 3).mean(0)


@pytest.mark.parametrize("ridge", [1e-5, 1e-3, 1e-2])
@pytest.mark.parametrize("encoder", [LosseEncoder(10, 4, 2), ENCODERS[2]])
def test_intervals_cover_held_out_patients(encoder, ridge):
    """Diabetes progression of 442 patients: each level within four percent."""
    data, target = load_diabetes(return_X_y=True)
    encoder = encoder.__class__(**encoder.get_params())
    model = FTLRegressor(encoder, ridge=ridge, solver="dense")
    covered = coverage(model, data, target - target.mean(), folds=5)
    np.testing.assert_allclose(covered, LEVELS, atol=0.04)


@pytest.mark.parametrize("discount", [0.9, 0.97, 0.99, 0.999])
def test_intervals_under_a_discount_are_right_or_too_wide(discount):
    """Forty features: a memory of ten or thirty samples is short for them, one of 100 is not."""
    data, target = load_diabetes(return_X_y=True)
    model = FTLRegressor(LosseEncoder(10, 3, 1), ridge=1e-2, solver="dense", discount=discount)
    covered = coverage(model, data, target - target.mean(), folds=5)
    assert (covered > LEVELS - 0.04).all()
    if discount >= 0.99:
        np.testing.assert_allclose(covered, LEVELS, atol=0.04)


@pytest.mark.parametrize("n", [800, 2400])
def test_intervals_cover_held_out_transitions(n):
    """Twelve outputs of the simulated Hopper, fewer samples than features and more."""
    pytest.importorskip("mujoco")
    rows = collect("Hopper-v5", n, seed=1)
    model = FTLRegressor(LosseEncoder(10, 10, 2), ridge=1e-3)
    covered = coverage(model, rows.inputs, rows.targets, folds=2)
    np.testing.assert_allclose(covered, LEVELS, atol=0.05)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2, 2, size=(3000, 3))
    targets = np.sin(3 * inputs[:, :1]) + 0.1 * rng.normal(size=(3000, 2))
    return inputs, targets


@pytest.mark.parametrize("batch", [1, 40])
def test_draws_have_the_leverages_of_the_formula(wave, batch):
    """Where active features are many: right on average, and off by a fifth for a row.

    They follow rows and a lambda that grows fourfold with them, without a factorisation.
    """
    inputs, targets = wave
    asked = 2 * inputs[2400:]  # most are where little was learned
    encoder = FourierEncoder(400).fit(inputs)
    model = FTLRegressor(encoder, ridge=1e-3, solver="exact").fit(inputs[:600], targets[:600])
    last = 700 if batch == 1 else 2400
    with counted_factorisations(drawn) as made:
        for first in range(600, last, batch):
            model.partial_fit(inputs[first : first + batch], targets[first : first + batch])
            mean, std = model.predict(asked, return_std=True)
    assert len(made) == 1
    np.testing.assert_allclose(mean, model.predict(asked), rtol=1e-9, atol=1e-12)
    Phi, there = encoder.transform(inputs[:last]), encoder.transform(asked)
    A = Phi.T @ Phi
    P = np.linalg.inv(A + 1e-3 * last * np.eye(len(A)))
    errors = targets[:last] - Phi @ model.weights_ - model.intercept_
    noise = (errors**2).sum(axis=0) / (last - np.trace(A @ P))
    leverages = np.einsum("ij,jk,ik->i", there, P, there)
    ratios = (std**2 / noise - 1.0) / leverages[:, None]
    np.testing.assert_allclose(np.median(ratios, axis=0), 1.0, atol=0.1)
    assert (ratios.std(axis=0) < 0.3).all()


@pytest.mark.parametrize("factor", [0.01, 0.5, 1.5, 10.0, 100.0])
def test_draws_follow_another_ridge(wave, factor):
    inputs, targets = wave
    rows = Rows(inputs[:1000], targets[:1000], np.ones(1000))
    encoder = FourierEncoder(400).fit(inputs)
    leader = Leader(Settings(encoder, ridge=1e-3, solver="exact"), encoder, Targets(2))
    leader.learn(rows, lambda: np.ones(2))
    leader.uncertainty(2 * inputs[2400:], 1.0, 1.0)
    leader._solver.retune(1e-3 * factor)
    _, leverages, _ = leader.uncertainty(2 * inputs[2400:], 1.0, 1.0)
    Phi, there = encoder.transform(inputs[:1000]), encoder.transform(2 * inputs[2400:])
    P = np.linalg.inv(Phi.T @ Phi + factor * np.eye(Phi.shape[1]))
    expected = np.einsum("ij,jk,ik->i", there, P, there)
    assert np.median(leverages / expected) == pytest.approx(1.0, abs=0.15)


def test_asking_that_is_interrupted_loses_no_rows(wave):
    inputs, targets = wave
    model = FTLRegressor(FourierEncoder(400), ridge=1e-3).fit(inputs[:600], targets[:600])
    model.predict(inputs[:2], return_std=True)
    model.partial_fit(2 * inputs[600:640], targets[600:640])
    with (
        patch.object(TrackedInverse, "rows_solved", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        model.predict(inputs[:2], return_std=True)
    asked = 2 * inputs[600:640]
    fresh = pickle.loads(pickle.dumps(model)).predict(asked, return_std=True)[1]
    np.testing.assert_allclose(model.predict(asked, return_std=True)[1], fresh)
