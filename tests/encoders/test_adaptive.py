"""`AdaptiveEncoder`: directions that follow the targets."""

import numpy as np
import pytest

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 8))
Y = np.column_stack([np.sin(2 * (X[:, 0] + X[:, 1])), X[:, 2]])
TRAIN, TEST = slice(0, 500), slice(500, 700)


def error(encoder):
    model = FTLRegressor(encoder, ridge=1e-3).fit(X[TRAIN], Y[TRAIN])
    return ((model.predict(X[TEST]) - Y[TEST]) ** 2).mean()


def test_axes_lie_where_targets_bend():
    encoder = AdaptiveEncoder(30, 4, n_stages=0).fit(X, Y)
    power = (encoder.projection_**2).sum(axis=(1, 2))
    # The sine bends along two inputs; the second target is linear and needs no grid.
    assert power[:2].sum() > 0.8 * power.sum()


def test_fewer_errors_than_random_directions_of_the_same_number():
    random = LosseEncoder(30, 4, inputs_per_axis=2, linear=True).fit(X[TRAIN])
    shallow = AdaptiveEncoder(30, 4, n_stages=0).fit(X[TRAIN], Y[TRAIN])
    deep = AdaptiveEncoder(30, 4, n_stages=2).fit(X[TRAIN], Y[TRAIN])
    assert error(shallow) < 0.5 * error(random)
    assert error(deep) < 0.5 * error(random)


def test_features_count_inputs_stages_and_grids():
    encoder = AdaptiveEncoder(6, 3, n_stages=1).fit(X, Y)
    assert encoder.projection_.shape == (8 + 2, 6, 2)
    assert encoder.transform(X).shape == (700, 6 * 16 + 8 + 2 + 1)
    assert AdaptiveEncoder(6, 3, n_stages=1, linear=False).fit(X, Y).dimension == 6 * 16
    W = rng.normal(size=(encoder.dimension, 8))
    out = np.empty((700, 8))
    encoder.times(X, W, out)
    np.testing.assert_allclose(out, encoder.transform(X) @ W, atol=1e-10)


def test_a_replaced_projection_keeps_the_offsets():
    encoder = AdaptiveEncoder(6, 3, n_stages=0).fit(X, Y)
    before = encoder.transform(X).toarray()
    encoder.projection_ = encoder.projection_.copy()
    np.testing.assert_array_equal(encoder.transform(X).toarray(), before)


@pytest.mark.parametrize("targets", [np.zeros(700), X @ np.arange(8.0)], ids=["constant", "linear"])
def test_targets_that_do_not_bend(targets):
    phi = AdaptiveEncoder(6, 3, n_stages=1).fit(X, targets).transform(X)
    assert np.isfinite(phi.toarray()).all()


def test_constant_inputs_and_few_rows():
    flat = X[:40].copy()
    flat[:, :7] = 5.0
    assert np.isfinite(AdaptiveEncoder(6, 3).fit(flat, Y[:40]).transform(flat).toarray()).all()
    assert AdaptiveEncoder(6, 3).fit(X[:12], Y[:12]).transform(X).shape[0] == 700


@pytest.mark.parametrize("size", [1e-60, 1e10, 1e60])
def test_inputs_of_any_size_that_are_not_scaled(size):
    encoder = AdaptiveEncoder(6, 3, n_stages=1, scaling=None).fit(size * X, Y)
    assert np.isfinite(encoder.transform(size * X).toarray()).all()


def test_rows_without_weight_do_not_count():
    weights = np.repeat([1.0, 0.0], 350)
    part = AdaptiveEncoder(6, 3).fit(X, Y, weights)
    alone = AdaptiveEncoder(6, 3).fit(X[:350], Y[:350])
    np.testing.assert_array_equal(part.projection_, alone.projection_)


@pytest.mark.parametrize(
    ("encoder", "y", "message"),
    [
        (AdaptiveEncoder(), None, "requires y"),
        (AdaptiveEncoder(warm_up=0), Y, "warm_up=0"),
        (AdaptiveEncoder(n_stages=-1), Y, "n_stages=-1"),
        (AdaptiveEncoder(n_stages=2**31), Y, "n_stages=2147483648"),
        (AdaptiveEncoder(warm_up=10**400), Y, "warm_up=1000"),
        (AdaptiveEncoder(n_grids=0), Y, "n_grids=0"),
    ],
)
def test_nonsense_is_refused(encoder, y, message):
    with pytest.raises(ValueError, match=message):
        encoder.fit(X, y)
    assert not hasattr(encoder, "projection_")
