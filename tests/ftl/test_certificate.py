"""`certificate_`: how far the weights are from the best fit at most, and the warning beyond 1 %."""

import warnings

import numpy as np
import pytest

from losse import FourierEncoder, FTLRegressor, LosseEncoder
from losse.ftl import LeaderWarning
from tests.ftl.models import large_models
from tests.ftl.reference import accurate_leader, objective

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(300, 3))
Y = np.column_stack([np.sin(2 * ROWS[:, 0]) + ROWS[:, 1], ROWS[:, 2]])

# Size of the inputs, and parameters.
EASY = {
    "scaled": (1.0, {"encoder": LosseEncoder(4, 4, scaling=(-3, 3))}),
    "unscaled": (1.0, {"encoder": LosseEncoder(4, 4, scaling=None, linear=True)}),
    "thousands": (1e3, {"encoder": LosseEncoder(4, 4, scaling=None, linear=True)}),
    "hundred millions": (1e8, {"encoder": LosseEncoder(4, 4, scaling=None, linear=True)}),
    "a small ridge": (1.0, {"encoder": LosseEncoder(4, 4, linear=True), "ridge": 1e-10}),
    "dense features": (1.0, {"encoder": FourierEncoder(90), "ridge": 1e-8}),
    "single": (1.0, {"encoder": LosseEncoder(4, 4), "dtype": "float32"}),
}


def excess(model, X, rows):
    """How far a model is from the best fit of some rows, by a QR factorisation of these."""
    Phi = model.encoder_.transform(X[rows])
    Phi = Phi.toarray() if hasattr(Phi, "toarray") else Phi
    best = accurate_leader(Phi, Y[rows], model.ridge_)
    reached = objective(Phi, Y[rows], model.weights_, model.ridge_)
    return reached / objective(Phi, Y[rows], best, model.ridge_) - 1


def lived(model, X, *, cut=240):
    """Learn, unlearn and merge; yields the rows that are learned after each call."""
    for start in range(0, 300, 20):
        model.partial_fit(X[start : start + 20], Y[start : start + 20])
        yield np.arange(start + 20)
    order = RNG.permutation(300)
    for start in range(0, cut, 40):
        gone = order[start : start + 40]
        model.unlearn(X[gone], Y[gone])
        yield order[start + 40 :]
    other = FTLRegressor(**model.get_params(deep=False) | {"encoder": model.encoder_})
    model.merge(other.fit(X[order[:cut]], Y[order[:cut]]))
    yield np.arange(300)


@pytest.mark.parametrize("solver", ["exact", "dense"])
@pytest.mark.parametrize("case", EASY)
def test_the_promise_is_kept_and_known(case, solver):
    size, parameters = EASY[case]
    model = FTLRegressor(**{"ridge": 1e-5, "solver": solver} | parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeaderWarning)
        cut = 40 if case == "single" else 240
        for rows in lived(model, size * ROWS, cut=cut):
            found, bound = excess(model, size * ROWS, rows), model.certificate_
            assert found <= 1.001 * bound + 1e-8
            assert bound <= 0.0101


@pytest.mark.parametrize("solver", ["exact", "dense"])
def test_what_is_not_kept_is_said_once(solver):
    """Rounding of single precision stays behind when most rows are unlearned."""
    model = FTLRegressor(FourierEncoder(90), solver=solver, ridge=2e-6, dtype="float32")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for start in range(0, 300, 20):
            model.partial_fit(ROWS[start : start + 20], Y[start : start + 20])
        for start in range(0, 280, 40):
            model.unlearn(ROWS[start : start + 40], Y[start : start + 40])
    assert model.certificate_ > 0.01
    (message,) = (str(each.message) for each in told if each.category is LeaderWarning)
    assert "certificate_" in message
    assert 'dtype="float64"' in message


def test_a_ridge_that_is_out_of_reach_is_said():
    with pytest.warns(LeaderWarning, match="ridge=1e-12 is out of reach .* counts as 1e-10"):
        model = FTLRegressor(LosseEncoder(4, 4), solver="exact", ridge=1e-12).fit(ROWS, Y)
    assert model.ridge_ == 1e-10


def test_large_models_know_how_near_they_are():
    with large_models():
        for solver in ("exact", "auto", "sparse"):
            model = FTLRegressor(LosseEncoder(4, 4, scaling=(-3, 3)), solver=solver, ridge=1e-4)
            for start in range(0, 300, 20):
                model.partial_fit(ROWS[start : start + 20], Y[start : start + 20])
            assert excess(model, ROWS, np.arange(300)) <= 1.001 * model.certificate_ + 1e-8
            if solver == "exact":
                assert model.certificate_ <= 0.0101


def test_the_papers_update_says_how_far_it_is():
    model = FTLRegressor(LosseEncoder(10, 6, scaling=(-3, 3)), solver="sparse", ridge=1e-5)
    model.fit(ROWS, Y)
    found = excess(model, ROWS, np.arange(300))
    assert 0.05 < found <= 1.001 * model.certificate_


def test_nothing_learned_is_exact():
    model = FTLRegressor(LosseEncoder(3, 3, scaling=(-3, 3)), ridge=1e-5).fit(ROWS, Y)
    assert model.unlearn(ROWS, Y).certificate_ == 0.0
