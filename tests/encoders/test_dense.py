"""Random Fourier and ReLU features."""

import numpy as np
import pytest

from losse import FourierEncoder, ReLUEncoder


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
