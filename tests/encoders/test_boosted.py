"""Boosted grids, before the stages of a cascade."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor
from losse.encoders.boosted import CHECKED, STRETCH, BoostedGrids, fit_boosted
from losse.encoders.cascade import LEAST_ROWS, fit_cascade
from losse.storage.archive import ArchiveError
from losse.work import UNIT, finished
from tests.storage.forgery import put_together, take_apart


def thresholds(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 6))
    return X, 2.0 * ((X[:, 0] > 0.3) & (X[:, 1] > -0.2)) + 0.5 * (X[:, 2] < 0.5)


def fit(X, y, weights=None, most=200):
    weights = np.ones(len(X)) if weights is None else weights
    rng = np.random.default_rng(0)
    return finished(fit_boosted(X, np.reshape(y, (len(X), -1)), weights, most, rng))


def lead_of(X, Y):
    Q = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    rng = np.random.default_rng(0)
    lead, *_ = finished(fit_cascade(X, Q, np.ones(len(X)), np.arange(len(X)), 1, rng))
    return lead


def test_codes_of_categories_are_told_apart():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 7, size=(1500, 2)).astype(float)
    y = rng.normal(size=(7, 7))[X[:, 0].astype(int), X[:, 1].astype(int)]
    grids, left_out = fit(X, y, most=400)
    np.testing.assert_allclose(grids.predict(X)[:, 0], y, atol=0.1)
    assert np.mean((left_out[:, 0] - y) ** 2) < 0.01 * y.var()


def test_predictions_of_rows_left_out_are_by_fits_without_them():
    """Targets at random can be learned by heart, but not told."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.normal(size=1000)
    y[::2] *= 10  # a few rows that many grids would follow
    grids, left_out = fit(X, y)
    assert np.mean((left_out[:, 0] - y) ** 2) > 0.98 * y.var()
    assert len(grids.cuts) <= 40


def test_grids_far_from_the_error_of_others_are_given_up_early():
    X, y = thresholds(1200)
    Y = np.column_stack([y, X @ np.arange(6.0)])

    def grids(errors):
        rng = np.random.default_rng(0)
        return len(finished(fit_boosted(X, Y, np.ones(1200), 100, rng, errors))[0].cuts)

    assert grids(np.array([1e-3, 1e-3])) == CHECKED
    assert grids(np.array([1e-3, 10.0])) == grids(np.inf) > 2 * CHECKED


def test_rows_without_weight_count_for_nothing():
    X, y = thresholds(1200)
    weights = np.repeat([1.0, 0.0], 600)
    other = np.where(weights > 0, y, 1e6)
    np.testing.assert_allclose(
        fit(X, other, weights)[0].predict(X[:600]), fit(X, y, weights)[0].predict(X[:600])
    )


def test_a_row_is_left_out_with_its_neighbours():
    X, y = thresholds(800)
    spoilt = y.copy()
    spoilt[:STRETCH] += 1000.0
    _, left_out = fit(X, spoilt, most=20)
    assert np.abs(left_out[:STRETCH]).max() < 100
    assert np.abs(left_out[STRETCH : 2 * STRETCH]).max() > 100


def test_an_input_that_never_varies_is_never_cut():
    X, y = thresholds(600)
    X[:, 3] = 5.0
    grids, _ = fit(X, y)
    real = grids.cuts < np.finfo(float).max
    assert real.any()
    assert not (grids.inputs[real] == 3).any()
    constant, _ = fit(np.ones((600, 1)), np.arange(600.0))
    np.testing.assert_allclose(constant.predict(np.ones((1, 1))), [[299.5]])


def test_work_is_in_units():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(6000, 20))
    work = fit_boosted(Z, Z[:, :3] ** 2, np.ones(6000), 20, rng)
    assert max(work) < 2 * UNIT


def test_they_come_first_where_they_predict_better():
    X, steps = thresholds(1500)
    smooth = np.sin(3 * X[:, 0] * X[:, 1] + X[:, 2])
    assert lead_of(X, smooth[:, None]) is None
    lead = lead_of(X, np.column_stack([smooth, steps]))
    assert lead.left_out.shape == (1500, 1)  # of the second target only
    assert np.corrcoef(lead.left_out[:, 0], steps)[0, 1] > 0.98
    few = LEAST_ROWS - 1
    assert lead_of(X[:few], steps[:few, None]) is None


@pytest.mark.parametrize("outputs", [1, 4])
def test_thresholds_are_learned(outputs, tmp_path):
    (X, y), (new, wanted) = thresholds(2000), thresholds(1000, seed=1)
    Y, W = (np.column_stack([v, *([x[:, 4]] * (outputs - 1))]) for v, x in ((y, X), (wanted, new)))
    model = FTLRegressor(AdaptiveEncoder(20, n_stages=2)).fit(X, Y)
    assert model.score(new, W) > 0.97
    model.save(tmp_path / "model.losse")
    same = FTLRegressor.load(tmp_path / "model.losse")
    np.testing.assert_array_equal(same.predict(new), model.predict(new))


@pytest.mark.parametrize(
    ("array", "change", "problem"),
    [
        ("inputs", lambda a: a + 6, "inputs of grids are not among 6"),
        ("inputs", lambda a: a - 6, "inputs of grids are not among 6"),
        ("cuts", lambda a: a[:-1], "array inputs"),
        ("values", lambda a: a[:, :16], "values"),
        ("values", lambda a: a * np.nan, "NaN"),
        ("constant", lambda a: np.append(a, a), "values"),
    ],
)
def test_forged_grids_are_refused(array, change, problem, tmp_path):
    path = tmp_path / "model.losse"
    X, y = thresholds(500)
    FTLRegressor(AdaptiveEncoder(5, n_stages=1)).fit(X, y).save(path)
    head, arrays = take_apart(path.read_bytes())
    (name,) = [name for name in arrays if name.endswith(f"lead.{array}")]
    arrays[name] = change(arrays[name])
    path.write_bytes(put_together(head, arrays))
    with pytest.raises(ArchiveError, match=problem):
        FTLRegressor.load(path)


def test_sums_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(70, 3))
    inputs, cuts = rng.integers(0, 3, size=(9, 5)), rng.normal(size=(9, 5))
    values, constant = rng.normal(size=(9, 32, 2)), rng.normal(size=2)
    wanted = [
        constant
        + sum(
            values[t, int("".join("01"[int(z[j] > c)] for j, c in zip(*pair, strict=True)), 2)]
            for t, pair in enumerate(zip(inputs, cuts, strict=True))
        )
        for z in Z
    ]
    np.testing.assert_allclose(BoostedGrids(inputs, cuts, values, constant).predict(Z), wanted)
