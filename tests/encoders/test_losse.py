"""What the paper promises of its encoder, and its options: affine terms, axes of few inputs."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from losse import LosseEncoder, TileEncoder

RNG = np.random.default_rng(0)


@given(
    n_grids=st.integers(1, 8),
    n_bins=st.integers(1, 12),
    grid_dim=st.integers(1, 4),
    n_features=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_sparsity_guarantee_of_remark_3_1(n_grids, n_bins, grid_dim, n_features, seed):
    X = np.random.default_rng(seed).normal(scale=2, size=(20, n_features))
    phi = LosseEncoder(n_grids, n_bins, grid_dim, seed=seed).fit_transform(X)
    assert phi.shape == (20, n_grids * (n_bins + 1) ** grid_dim)
    active = np.diff(phi.indptr)
    assert (active <= n_grids * 2**grid_dim).all()
    assert active.max() / phi.shape[1] <= (2 / n_bins) ** grid_dim
    # Weights of interpolation: in every grid they are not negative and sum to one.
    assert phi.min() >= 0
    per_grid = phi.toarray().reshape(20, n_grids, -1).sum(axis=2)
    np.testing.assert_allclose(per_grid, 1, atol=1e-12)


def test_soft_binning_interpolates_between_the_nearest_edges():
    """1.7 between edges 0, 1, 2, 3 is .3 of edge 1 and .7 of edge 2: the nearer one counts more."""
    encoder = LosseEncoder(n_grids=1, n_bins=3, grid_dim=1, scaling=None).fit([[0.0]])
    encoder.projection_ = np.ones((1, 1, 1))
    x = np.log(1.7 / 3 / (1 - 1.7 / 3))  # its sigmoid is 1.7 / 3
    np.testing.assert_allclose(encoder.transform([[x]]).toarray(), [[0, 0.3, 0.7, 0]], atol=1e-12)


@pytest.mark.parametrize("grid_dim", [1, 2, 3])
def test_features_reproduce_multilinear_functions_of_the_squashed_axes(grid_dim):
    X = RNG.normal(size=(50, 3))
    encoder = LosseEncoder(4, 6, grid_dim, scaling=None).fit(X)
    phi = encoder.transform(X).toarray().reshape(50, 4, *[7] * grid_dim)
    axes = 1 / (1 + np.exp(-np.einsum("nf,fgd->ngd", X, encoder.projection_)))
    edges = np.linspace(0, 1, 7)
    for d in range(grid_dim):
        table = edges.reshape([-1 if k == d else 1 for k in range(grid_dim)])
        value = (phi * table).sum(axis=tuple(range(2, 2 + grid_dim)))
        np.testing.assert_allclose(value, axes[:, :, d], atol=1e-12)


@pytest.mark.parametrize("Encoder", [LosseEncoder, TileEncoder])
@pytest.mark.parametrize("grid_dim", [1, 2, 3])
@pytest.mark.parametrize("scaling", [None, "standard", (-1, 1)])
@pytest.mark.parametrize("extreme", [1e3, -1e3, 1e300, -1e300, np.finfo(np.float32).max])
def test_saturated_and_clipped_inputs_stay_in_their_own_grid(Encoder, grid_dim, scaling, extreme):
    encoder = Encoder(5, 4, grid_dim, scaling=scaling).fit(RNG.normal(size=(30, 2)))
    phi = encoder.transform(np.full((1, 2), extreme)).toarray().reshape(5, -1)
    np.testing.assert_allclose(phi.sum(axis=1), 1)
    assert (phi >= 0).all()


def test_similar_inputs_share_features_and_distant_ones_do_not():
    x = np.array([[0.2, -0.4, 0.1]])
    encoder = LosseEncoder(50, 10, 2, scaling=None).fit(x)
    phi = encoder.transform(np.vstack([x, x + 0.01, x + 3])).toarray()
    near, far = phi[0] @ phi[1], phi[0] @ phi[2]
    assert near > 0.95 * (phi[0] @ phi[0])
    assert far < 0.2 * near


def test_projection_is_truncated_normal_scaled_by_fan_in():
    encoder = LosseEncoder(2000, 1, 2).fit(RNG.normal(size=(5, 9)))
    P = encoder.projection_ * 3  # sqrt(9)
    assert P.shape == (9, 2000, 2)
    assert np.abs(P).max() <= 2
    assert P.std() == pytest.approx(0.88, abs=0.01)  # of a normal cut off at two sigma
    assert P.mean() == pytest.approx(0, abs=0.02)


def test_same_seed_same_features_in_another_process():
    code = (
        "import numpy as np, hashlib; from losse import LosseEncoder; "
        "X = np.random.default_rng(3).normal(size=(100, 4)); "
        "phi = LosseEncoder(7, 5, 3, seed=11).fit_transform(X); "
        "print(hashlib.sha256(phi.data.tobytes() + phi.indices.tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        .stdout.strip()
        for _ in range(2)
    }  # fmt: skip
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_other_seed_other_features():
    X = RNG.normal(size=(10, 3))
    a, b = (LosseEncoder(seed=s).fit_transform(X).toarray() for s in (0, 1))
    assert not np.allclose(a, b)


def test_scaling_maps_bounds_to_three():
    low, high = np.array([0.0, -10.0]), np.array([1.0, 30.0])
    bounded = LosseEncoder(scaling=(low, high)).fit([[0.3, 7.0]])
    plain = LosseEncoder(scaling=None).fit([[0.0, 0.0]])
    X = RNG.uniform(low, high, size=(20, 2))
    Z = (X - (low + high) / 2) * 6 / (high - low)
    np.testing.assert_allclose(
        bounded.transform(X).toarray(), plain.transform(Z).toarray(), atol=1e-12
    )
    outside = bounded.transform([[5.0, 1000.0]]).toarray()
    np.testing.assert_array_equal(outside, bounded.transform([high]).toarray())


def test_standard_scaling_is_frozen_and_knows_constant_features():
    X = RNG.normal(5, 2, size=(200, 3))
    X[:, 1] = 7.0
    encoder = LosseEncoder().fit(X)
    plain = LosseEncoder(scaling=None).fit(X)
    spread = np.array([X[:, 0].std(), 1.0, X[:, 2].std()])
    Z = np.clip((X - X.mean(axis=0)) / spread, -3, 3)
    np.testing.assert_allclose(
        encoder.transform(X).toarray(), plain.transform(Z).toarray(), atol=1e-12
    )


def test_replaced_projection_is_used_and_checked():
    X = RNG.normal(size=(10, 3))
    a, b = LosseEncoder(seed=0).fit(X), LosseEncoder(seed=1).fit(X)
    a.projection_ = b.projection_
    np.testing.assert_array_equal(a.transform(X).toarray(), b.transform(X).toarray())
    with pytest.raises(ValueError, match=r"projection_ has shape \(3, 2, 2\), expected"):
        a.projection_ = np.zeros((3, 2, 2))
    a.projection_[0] = 0.0  # in place
    assert not np.array_equal(a.transform(X).toarray(), b.transform(X).toarray())


def test_float32_input_gives_the_features_of_its_values():
    X = RNG.normal(size=(20, 4)).astype(np.float32)
    encoder = LosseEncoder().fit(X)
    np.testing.assert_array_equal(
        encoder.transform(X).toarray(), encoder.transform(X.astype(np.float64)).toarray()
    )


def test_tiles_are_where_the_soft_bins_are():
    X = RNG.normal(size=(30, 3))
    soft = LosseEncoder(6, 5, 2, scaling=None).fit(X)
    hard = TileEncoder(6, 5, 2, scaling=None).fit(X)
    hard.projection_ = soft.projection_
    lowest = soft.transform(X).indices.reshape(30, 6, 4)[:, :, 0] - 36 * np.arange(6)
    tiles = hard.transform(X).indices.reshape(30, 6) - 25 * np.arange(6)
    np.testing.assert_array_equal(tiles, lowest // 6 * 5 + lowest % 6)


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


@pytest.mark.parametrize("n_outputs", [1, 4, 5, 8, 9, 12, 13, 16, 17, 30])
def test_only_columns_that_matter_are_predicted(n_outputs):
    width = -(-n_outputs // 8) * 8
    X = RNG.normal(size=(70, 3))
    encoder = LosseEncoder(5, 6, 2, scaling=None).fit(X)
    W, out = np.zeros((encoder.dimension, width)), np.full((70, width), np.nan)
    W[:, :n_outputs] = RNG.normal(size=(encoder.dimension, n_outputs))
    encoder.times(X, W, out, n_outputs)
    expected = encoder.transform(X) @ W[:, :n_outputs]
    np.testing.assert_allclose(out[:, :n_outputs], expected, atol=1e-12)
