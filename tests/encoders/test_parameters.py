"""Nonsense parameters are refused by name and value when an encoder is fitted."""

import numpy as np
import pytest

from losse import FourierEncoder, LosseEncoder, TileEncoder

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
