"""`LosseEncoder` with affine terms beside its grids, and axes that mix few inputs."""

import numpy as np
import pytest

from losse import LosseEncoder

X = np.random.default_rng(0).normal(size=(60, 5))


@pytest.mark.parametrize("grid_dim", [1, 2, 3])
def test_linear_terms_follow_the_grids_which_stay_as_they_are(grid_dim):
    plain = LosseEncoder(4, 3, grid_dim).fit(X)
    encoder = LosseEncoder(4, 3, grid_dim, linear=True).fit(X)
    phi = encoder.transform(X).toarray()
    assert encoder.dimension == plain.dimension + 6 == phi.shape[1]
    assert encoder.n_active == plain.n_active + 6
    np.testing.assert_array_equal(phi[:, :-6], plain.transform(X).toarray())
    scaled = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -3, 3)
    np.testing.assert_allclose(phi[:, -6:], np.column_stack([np.ones(60), scaled]))


@pytest.mark.parametrize("grid_dim", [2, 3])
def test_predictions_are_products_with_the_features(grid_dim):
    encoder = LosseEncoder(4, 3, grid_dim, linear=True, inputs_per_axis=2).fit(X)
    W = np.random.default_rng(1).normal(size=(encoder.dimension, 8))
    out = np.empty((60, 8))
    encoder.times(X, W, out)
    np.testing.assert_allclose(out, encoder.transform(X) @ W, atol=1e-12)


def test_axes_mix_as_many_inputs_as_they_are_told_to():
    P = LosseEncoder(50, inputs_per_axis=2).fit(X).projection_
    assert ((P != 0).sum(axis=0) == 2).all()
    assert (np.abs(P).sum(axis=(1, 2)) > 0).all()  # every input is in some axis
    np.testing.assert_allclose((P**2).sum(axis=0), 1.0)


def test_without_options_the_encoder_is_the_paper_s():
    all_of_them = LosseEncoder(6, inputs_per_axis=5).fit(X)
    np.testing.assert_array_equal(all_of_them.projection_, LosseEncoder(6).fit(X).projection_)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"linear": "yes"}, TypeError), ({"inputs_per_axis": 0}, ValueError)],
)
def test_nonsense_is_refused(options, error):
    (name,) = options
    with pytest.raises(error, match=f"{name}="):
        LosseEncoder(**options).fit(X)
