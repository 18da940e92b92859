"""Size of files and pickles: what a model knows, and not the room that it has reserved."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder

X, Y = load_diabetes(return_X_y=True)
MEGABYTE = 1 << 20


LARGE = AdaptiveEncoder(n_bins=4)


def few_rows():
    return FTLRegressor(LARGE).fit(X, Y)


def weighted_rows():
    return FTLRegressor(LARGE).fit(X, Y, sample_weight=np.linspace(0.5, 2, len(Y)))


def paper():
    return FTLRegressor(LosseEncoder(), solver="sparse", ridge=1e-5).fit(X[:60], Y[:60])


def inverse():
    return FTLRegressor(LosseEncoder(9), solver="exact").fit(np.tile(X, (3, 1)), np.tile(Y, 3))


@pytest.mark.parametrize(
    ("make", "most"),
    [(few_rows, 6), (weighted_rows, 6), (paper, 5), (inverse, 7)],
)
def test_files_and_pickles_hold_what_is_known_and_go_on_bit_for_bit(make, most, tmp_path):
    model = make()
    model.save(tmp_path / "model", progress=False)
    content = pickle.dumps(model)
    assert (tmp_path / "model").stat().st_size < most * MEGABYTE
    assert len(content) < most * MEGABYTE
    others = [
        FTLRegressor.load(tmp_path / "model", progress=False),
        pickle.loads(content),
        deepcopy(model),
    ]
    went_on = set()
    for one in (model, *others):
        one.partial_fit(X[:50], Y[:50]).partial_fit(X[50:90], -Y[50:90]).unlearn(X[:5], Y[:5])
        went_on.add(one.predict(X).tobytes())
    assert len(went_on) == 1


def test_pickles_of_a_models_own_encoder_go_on_as_before():
    model = FTLRegressor(Mine(4, 3), solver="sparse", ridge=1e-3).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))


class Mine(LosseEncoder):
    """An encoder that no checkpoint can describe."""
