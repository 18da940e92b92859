"""Encoders keep to the conventions of scikit-learn, and refuse nonsense; dense random features."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from losse import AdaptiveEncoder, FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder

ENCODERS = [LosseEncoder(), FourierEncoder(), ReLUEncoder(), TileEncoder()]


@parametrize_with_checks([*ENCODERS, LosseEncoder(5, inputs_per_axis=2, linear=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def all_but_the_order_of_rows():
    """What an adaptive encoder draws from its rows depends on their order."""
    for estimator, check in estimator_checks_generator(AdaptiveEncoder(5, n_stages=1)):
        if "sample_weight_equivalence" not in str(check):
            yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.parametrize(("estimator", "check"), list(all_but_the_order_of_rows()))
def test_an_encoder_that_draws_from_its_rows(estimator, check):
    check(estimator)


X = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("encoder", "error", "message"),
    [
        (LosseEncoder(n_grids=0), ValueError, "n_grids=0 must be an integer of at least 1"),
        (LosseEncoder(n_bins=-2), ValueError, "n_bins=-2"),
        (LosseEncoder(n_bins=2.5), TypeError, "n_bins=2.5"),
        (TileEncoder(grid_dim=0), ValueError, "grid_dim=0"),
        (LosseEncoder(seed=-1), ValueError, "seed=-1"),
        (LosseEncoder(seed="a"), TypeError, "seed='a'"),
        (LosseEncoder(grid_dim=40), ValueError, "than can be indexed .*: lower one of them"),
        (LosseEncoder(scaling="minmax"), ValueError, "scaling='minmax' is not known: use None"),
        (LosseEncoder(scaling=(1, 1)), ValueError, "low bound must be finite and below"),
        (LosseEncoder(scaling=(0, np.inf)), ValueError, "must be finite"),
        (LosseEncoder(scaling=([0, 0, 0], 1)), ValueError, "does not fit 2 features"),
        (FourierEncoder(n_components=0), ValueError, "n_components=0"),
        (FourierEncoder(scale=0), ValueError, "scale=0 must be a finite number greater than 0"),
        (FourierEncoder(scale=np.nan), ValueError, "scale=nan"),
    ],
)
def test_refused(encoder, error, message):
    with pytest.raises(error, match=message):
        encoder.fit(X)
    assert not hasattr(encoder, "projection_")


def test_scaling_on_too_few_rows_is_warned_about():
    with pytest.warns(UserWarning, match=r"frozen on 3 row\(s\).*give bounds"):
        LosseEncoder().fit(X)


def test_fourier_features_approximate_the_gaussian_kernel():
    X = np.random.default_rng(0).normal(size=(30, 4))
    phi = FourierEncoder(20_000, scale=1.5, scaling=None).fit_transform(X)
    distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    kernel = np.exp(-(1.5**2) * distance / (2 * 4))
    np.testing.assert_allclose(phi @ phi.T, kernel, atol=0.05)


def test_relu_features_are_rectified_affine_functions():
    X = np.random.default_rng(0).normal(size=(30, 4))
    encoder = ReLUEncoder(50, scaling=None).fit(X)
    expected = np.maximum(X @ encoder.projection_ + encoder.offset_, 0) * np.sqrt(2 / 50)
    np.testing.assert_allclose(encoder.transform(X), expected, atol=1e-12)


@pytest.mark.parametrize("Encoder", [FourierEncoder, ReLUEncoder])
def test_replaced_projection_of_other_width_is_refused(Encoder):
    encoder = Encoder(10).fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"projection_ has shape \(4, 10\), expected \(3, 10\)"):
        encoder.projection_ = np.zeros((4, 10))
