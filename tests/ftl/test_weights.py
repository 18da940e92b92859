"""Sample weights, discount, and what a lifetime of samples does to precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from losse import FTLRegressor, LosseEncoder
from tests.ftl.models import memory
from tests.ftl.reference import leader, stream

X, Y = stream(200)
ENCODER = LosseEncoder(5, 5, 2).fit(X)
PHI = ENCODER.transform(X).toarray()


@given(st.lists(st.integers(0, 4), min_size=60, max_size=60).filter(any))
@settings(max_examples=15)
def test_a_weight_is_a_number_of_repetitions(weights):
    weights = np.array(weights)
    weighted = FTLRegressor(ENCODER, solver="dense", ridge=1e-5).fit(
        X[:60], Y[:60], sample_weight=weights
    )
    repeated = FTLRegressor(ENCODER, solver="dense", ridge=1e-5).fit(
        np.repeat(X[:60], weights, axis=0), np.repeat(Y[:60], weights, axis=0)
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


@pytest.mark.parametrize("solver", ["dense", "exact"])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.999])
def test_discount_weighs_a_sample_by_its_age(solver, discount):
    model = FTLRegressor(ENCODER, solver=solver, discount=discount, ridge=1e-3)
    for start in range(0, 200, 23):
        model.partial_fit(X[start : start + 23], Y[start : start + 23])
    expected = PHI @ leader(PHI, Y, 1e-3, discount ** np.arange(199.0, -1, -1))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.predict(X), expected, atol=0.05 * scale)
    if solver == "dense":
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-7 * scale)


def test_discount_goes_on_for_ever():
    """Weights grow without bound in principle; the sums are scaled back in time."""
    rng = np.random.default_rng(0)
    model = FTLRegressor(ENCODER, solver="dense", discount=0.5, ridge=1e-5)
    for _ in range(30):
        rows = rng.integers(0, 200, size=50)
        model.partial_fit(X[rows], Y[rows])
    assert np.isfinite(model.weights_).all()
    model.partial_fit(np.tile(X, (20, 1)), np.tile(Y, (20, 1)))  # 0.5 ** -4000 overflows
    last = FTLRegressor(ENCODER, solver="dense", discount=0.5, ridge=1e-5).fit(X[100:], Y[100:])
    np.testing.assert_allclose(model.predict(X[190:]), last.predict(X[190:]), atol=1e-9)


@pytest.mark.parametrize("solver", ["sparse", "dense", "exact"])
def test_after_a_billion_samples_new_data_still_count(solver):
    """Each cell starts with 1e9 visits; double precision takes in what follows, float does not."""
    moved = {}
    for dtype in ("float64", "float32"):
        model = FTLRegressor(ENCODER, solver=solver, dtype=dtype, ridge=1e-5)
        model.partial_fit(X, Y, sample_weight=np.full(200, 1e9))
        before = memory(model).A.copy()
        for _ in range(20):
            model.partial_fit(X, Y + 1)
        gained = memory(model).A.astype(np.float64).sum() - before.astype(np.float64).sum()
        moved[dtype] = gained / (20 * PHI.sum(axis=1) @ PHI.sum(axis=1))
        if dtype == "float64" and solver != "sparse":  # which still approaches the leader
            start = FTLRegressor(ENCODER, solver=solver, ridge=1e-5).fit(
                X, Y, sample_weight=np.full(200, 1e9)
            )
            change = model.predict(X) - start.predict(X)
            assert change.mean() == pytest.approx(20 / 1e9, rel=0.2)
    assert moved["float64"] == pytest.approx(1, rel=1e-3)
    assert moved["float32"] < 0.5
