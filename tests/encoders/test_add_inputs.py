"""A fitted encoder can take more inputs: what it knew before stays as it was."""

import numpy as np
import pandas as pd
import pytest

from losse import FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(20, 3))


def dense(features):
    return features if isinstance(features, np.ndarray) else features.toarray()


@pytest.mark.parametrize("kind", [LosseEncoder, TileEncoder, FourierEncoder, ReLUEncoder])
@pytest.mark.parametrize("scaling", [None, (-1, 1)])
def test_a_neutral_input_changes_nothing(kind, scaling):
    encoder = kind(scaling=scaling).fit(X)
    before, directions = dense(encoder.transform(X)), encoder.projection_.copy()
    encoder.add_inputs(np.ones((2, *directions.shape[1:])), scaling and ([0, 5], [2, 7]))
    assert encoder.n_features_in_ == 5
    assert np.array_equal(encoder.projection_[:3], directions)
    neutral = [1.0, 6.0] if scaling else [0.0, 0.0]
    after = dense(encoder.transform(np.column_stack([X, np.tile(neutral, (20, 1))])))
    assert np.allclose(after, before, atol=1e-14)


def test_narrow_and_widened_is_as_wide_from_the_start():
    wide = LosseEncoder(n_grids=4, scaling=(-1, 1)).fit(X)
    grown = LosseEncoder(n_grids=4, scaling=(-1, 1)).fit(X[:, :1])
    grown.projection_ = wide.projection_[:1]
    grown.add_inputs(wide.projection_[1:], (-1, 1))
    assert (grown.transform(X) != wide.transform(X)).nnz == 0


@pytest.mark.parametrize(
    ("shape", "bounds", "message"),
    [
        ((1, 4, 2), None, r"bounds=None do not suit scaling=\(-1, 1\): give \(low, high\)"),
        ((1, 4), (0, 1), r"projection has shape \(1, 4\), expected \(n, 4, 2\)"),
        ((), (0, 1), r"projection has shape \(\)"),
        ((1, 4, 2), (1, 0), "low bound must be finite and below"),
        ((1, 4, 2), ([0, 0], [1, 1]), "does not fit 1 features"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(shape, bounds, message):
    encoder = LosseEncoder(n_grids=4, scaling=(-1, 1)).fit(X)
    before = encoder.transform(X)
    with pytest.raises(ValueError, match=message):
        encoder.add_inputs(np.ones(shape), bounds)
    assert (encoder.transform(X) != before).nnz == 0


def test_an_encoder_of_named_columns_is_refused():
    encoder = LosseEncoder(n_grids=4, scaling=(-1, 1)).fit(pd.DataFrame(X, columns=list("abc")))
    with pytest.raises(ValueError, match="fit it on an array"):
        encoder.add_inputs(np.ones((1, 4, 2)), (0, 1))
