"""Intervals hold their share of targets, whatever the tails of errors are."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.stats import norm

from losse import FourierEncoder, FTLRegressor, LosseEncoder
from losse.ftl import merge_all
from losse.ftl.intervals import Errors, Intervals
from losse.ftl.kept_rows import Rows
from losse.ftl.leader import Leader
from losse.ftl.settings import Settings
from losse.ftl.targets import Targets
from losse.work import finished
from tests.ftl.models import ENCODERS, RIDGE, X, Y

LEVELS = (0.8, 0.9, 0.95)
SOLVERS = ("auto", "sparse", "dense")


def stream(n, seed=0):
    """Two outputs of an input, with noise of heavy tails."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=(n, 1))
    noise = rng.standard_t(2.5, size=(n, 2)) * [0.1, 30.0]
    return x, np.hstack([np.sin(x), 100 * np.cos(x)]) + noise


def batches(model, x, y, size=50):
    for first in range(0, len(x), size):
        model.partial_fit(x[first : first + size], y[first : first + size])
    return model


def coverage(model, x, y, level):
    """Share of targets within the intervals, per output."""
    low, high = model.predict_interval(x, level)
    return ((low <= y) & (y <= high)).mean(axis=0)


def small(**options):
    return FTLRegressor(LosseEncoder(5, 5, 1, scaling=(-3, 3)), ridge=1e-4, **options)


@pytest.fixture(scope="module")
def learned():
    return batches(small(), *stream(3000))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_heavy_tails(level, solver):
    model = batches(small(solver=solver), *stream(3000))
    np.testing.assert_allclose(coverage(model, *stream(4000, seed=1), level), level, atol=0.02)


def test_normal_intervals_would_not_do(learned):
    x, y = stream(4000, seed=1)
    mean, std = learned.predict(x, return_std=True)
    assert (np.mean(abs(y - mean) <= 1.2816 * std, axis=0) > 0.85).all()


@pytest.mark.parametrize("level", LEVELS)
def test_errors_that_grow_where_rows_are_rare(level):
    """Six places, each half as frequent as the one before; then all alike, as after a change."""

    def rows(n, seed, shares):
        rng = np.random.default_rng(seed)
        place = rng.choice(6, size=n, p=shares)
        return place[:, None] - 2.5, 2.0 ** place[:, None] * rng.laplace(size=(n, 1))

    halves = 2.0 ** np.arange(5, -1, -1) / 63
    model = batches(small(), *rows(4000, 0, halves))
    x, y = rows(4000, 1, np.full(6, 1 / 6))
    np.testing.assert_allclose(coverage(model, x, y, level), level, atol=0.03)
    mean, std = model.predict(x, return_std=True)
    assert np.mean(abs(y - mean) <= norm.ppf(0.5 + level / 2) * std) < level - 0.05


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_errors_that_fall_as_a_model_learns(rate):
    """The latest errors are what comes next, not the mean of those since it knew little."""
    rng = np.random.default_rng(0)
    intervals, size = Intervals(1), lambda n: 50.0 * n**-rate
    for n in range(500, 1500, 25):
        errors = size(n) * rng.laplace(size=(25, 1))
        intervals.add(Errors(errors, rng.uniform(50, 100, 25) / n, np.ones(25), float(n)))
    asked = np.array([50, 75, 100]) / 1500
    noise = np.array([2 * size(1500) ** 2])  # as the posterior knows it
    widths = intervals.half_widths(0.8, asked, noise, 1500.0)[:, 0]
    np.testing.assert_allclose(widths, size(1500) * np.log(5), rtol=0.12)
    # Of several models, merged, more rows than any has learned: nobody knows how they fall there.
    beyond = intervals.half_widths(0.8, asked / 10, noise, 15_000.0)[:, 0]
    np.testing.assert_allclose(beyond, widths, rtol=0.05)


def test_one_call_is_enough():
    """Errors of rows left out stand for errors ahead, in closed form."""
    model = FTLRegressor(FourierEncoder(100), ridge=1e-3).fit(*stream(1000))
    np.testing.assert_allclose(coverage(model, *stream(4000, seed=1), 0.8), 0.8, atol=0.05)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_another_ridge_while_rows_are_few(seed):
    """Of more inputs than rows: the ridge changes after 96 rows, and all leverages."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1100, 500))
    y = x[:, :10].sum(axis=1) * 2 + 0.5 * rng.normal(size=1100)
    model = batches(FTLRegressor(), x[:75], y[:75], size=25)
    before = model.ridge_
    model.partial_fit(x[75:100], y[75:100])
    assert model.ridge_ < 0.2 * before or model.ridge_ > 5 * before
    assert coverage(model, x[100:], y[100:], 0.8) == pytest.approx(0.8, abs=0.13)


@pytest.mark.parametrize("n", [60, 240])  # fewer samples than features, and more
def test_rows_left_out_have_the_errors_of_models_without_them(n):
    def leader(rows):
        made = Leader(Settings(ENCODERS[0], ridge=RIDGE), ENCODERS[0], Targets(Y.shape[1]))
        made.learn(rows, lambda: np.ones(Y.shape[1]))
        return made

    rows = Rows(X[:n], Y[:n], np.ones(n))
    found = finished(leader(rows).left_out(rows[:20]))
    for k in range(20):
        without = leader(rows.take(np.arange(n) != k))
        error = Y[k] - without.predict(X[k : k + 1])[0]
        np.testing.assert_allclose(found.errors[k], error, atol=0.05 * abs(Y).max())
        leverage = without.uncertainty(X[k : k + 1], 1.0, 1.0)[1][0]
        assert found.leverages[k] == pytest.approx(leverage, rel=0.3)


def test_rows_left_out_of_an_interpolation_have_their_errors_too():
    """With so small a ridge, 1 - w h is below the rounding of h."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 100)), rng.normal(size=(20, 1))

    def leader(rows):
        encoder = FourierEncoder(400).fit(x)
        made = Leader(Settings(encoder, ridge=1e-13), encoder, Targets(1))
        made.learn(rows, lambda: np.ones(1))
        return made

    rows = Rows(x, y, np.ones(20))
    found = finished(leader(rows).left_out(rows))
    for k in range(20):
        without = leader(rows.take(np.arange(20) != k))
        error = y[k] - without.predict(x[k : k + 1])[0]
        assert found.errors[k] == pytest.approx(error, rel=0.1)
        leverage = without.uncertainty(x[k : k + 1], 1.0, 1.0)[1][0]
        assert found.leverages[k] == pytest.approx(leverage, rel=0.2)


def test_deviations_of_an_interpolation_are_those_of_its_errors():
    """Residuals are then below the rounding of the memories; the noise is found without it."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2020, 100)), rng.normal(size=2020)
    model = FTLRegressor(FourierEncoder(400), ridge=1e-9).fit(x[:20], y[:20])
    assert np.abs(model.predict(x[:20]) - y[:20]).max() < 1e-4
    mean, std = model.predict(x[20:], return_std=True)
    assert np.median(std) == pytest.approx(np.std(y[20:] - mean), rel=0.5)
    low, high = model.predict_interval(x[20:], 0.8)
    assert np.mean((low <= y[20:]) & (y[20:] <= high)) == pytest.approx(0.8, abs=0.15)


def test_without_errors_it_is_the_normal_interval():
    model = FTLRegressor(ENCODERS[0], solver="sparse", ridge=1e-3).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, 0.95)
    np.testing.assert_allclose(high - mean, 1.959964 * std, rtol=1e-6)
    np.testing.assert_allclose(mean - low, 1.959964 * std, rtol=1e-6)


def test_wider_for_a_larger_share(learned):
    x = np.linspace(-3, 3, 50)[:, None]
    widths = [np.diff(learned.predict_interval(x, c), axis=0)[0] for c in (0.01, 0.5, 0.9, 0.9999)]
    assert (np.diff(widths, axis=0) > 0).all()


def test_units_of_targets_do_not_matter():
    x, y = stream(1500)
    plain, other = (batches(small(center=True), x, values) for values in (y, 1e3 * y - 70.0))
    for bound, expected in zip(
        other.predict_interval(x[:100]), plain.predict_interval(x[:100]), strict=True
    ):
        np.testing.assert_allclose(bound, 1e3 * expected - 70.0, rtol=1e-6)


def test_round_trips(tmp_path, learned):
    learned.save(tmp_path / "model.losse")
    x, y = stream(300, seed=2)
    ways = [learned, FTLRegressor.load(tmp_path / "model.losse"), deepcopy(learned)]
    expected, *others = [batches(deepcopy(model), x, y).predict_interval(x) for model in ways]
    for found in others:
        np.testing.assert_array_equal(found, expected)


def test_merged_models_have_the_errors_of_all():
    x, y = stream(6000)
    encoder = LosseEncoder(5, 5, 1, scaling=(-3, 3)).fit(x)
    parts = [batches(FTLRegressor(encoder, ridge=1e-4), x[k::3], y[k::3]) for k in range(3)]
    found = coverage(merge_all(parts), *stream(4000, seed=1), 0.9)
    np.testing.assert_allclose(found, 0.9, atol=0.02)


def test_of_two_models_the_latest_errors_count():
    def errors(size, value):
        return Errors(np.full((size, 1), value), np.full(size, 0.1), np.ones(size), 100.0)

    one, two = Intervals(1), Intervals(1)
    one.add(errors(1500, 9.0))
    one.add(errors(500, 1.0))
    two.add(errors(1500, 2.0))
    one.absorb(two)
    asked = np.array([0.1]), np.array([1.0]), 100.0
    middle, most = (one.half_widths(share, *asked)[0, 0] for share in (0.2, 0.95))
    assert middle == pytest.approx(1.0, abs=0.02)
    assert most == pytest.approx(9.0, abs=0.1)


def test_a_discount_forgets_old_errors():
    x, y = stream(3000)
    y[:2000] *= 100
    model = batches(small(discount=0.99), x, y)
    later = stream(4000, seed=1)
    assert (abs(coverage(model, *later, 0.8) - 0.8) < 0.08).all()


def test_everything_unlearned_is_not_known():
    model = small().fit(X[:20, :1], Y[:20])
    low, high = model.unlearn(X[:20, :1], Y[:20]).predict_interval(X[:3, :1])
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_shapes_follow_the_targets():
    low, high = FTLRegressor(ENCODERS[0], ridge=1e-5).fit(X, Y[:, 0]).predict_interval(X[:5])
    assert low.shape == high.shape == (5,)


@pytest.mark.parametrize("share", [0, 1, -0.5, 95, "0.9", None, float("nan")])
def test_a_share_is_between_zero_and_one(learned, share):
    with pytest.raises((TypeError, ValueError), match=r"coverage=.* between 0 and 1"):
        learned.predict_interval([[0.0]], share)
