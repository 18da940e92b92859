"""Small models of every kind, and ways to compare them."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import losse.ftl.memories.base
import losse.ftl.solvers.exact
from losse import (
    AdaptiveEncoder,
    FourierEncoder,
    FTLRegressor,
    LosseEncoder,
    ReLUEncoder,
    TileEncoder,
)
from tests.ftl.reference import stream

X, Y = stream(240)
ENCODERS = [
    LosseEncoder(5, 5, 2).fit(X),
    TileEncoder(6, 4, 2).fit(X),
    FourierEncoder(60).fit(X),
    ReLUEncoder(60).fit(X),
    LosseEncoder(5, 5, 2, inputs_per_axis=2, linear=True).fit(X),
    AdaptiveEncoder(5, 3, n_stages=2).fit(X, Y),
]
SOLVERS = ("sparse", "dense", "exact", "auto")
RIDGE = 1e-3


@contextmanager
def large_models(large=True):
    """As if every model were large: A packed, no inverse, and soon too many samples."""
    limit = 0 if large else 8192
    with (
        patch.object(losse.ftl.memories.base, "SQUARE_LIMIT", limit),
        patch.object(losse.ftl.solvers.exact, "SAMPLE_LIMIT", 100),
    ):
        yield


def models(**parameters):
    """A strategy for new models of all kinds."""
    return st.builds(
        lambda encoder, solver, center: FTLRegressor(
            encoder, solver=solver, ridge=RIDGE, center=center, **parameters
        ),
        st.sampled_from(ENCODERS),
        st.sampled_from(SOLVERS),
        st.booleans(),
    )


def like(model):
    """A new model with the same parameters, and the same encoder object."""
    return FTLRegressor(**model.get_params(deep=False))


def parts(model):
    """All that a model knows, by name."""
    learner = model._learner
    own = {"n": learner.n_samples, "unit": learner.unit}
    return own | learner._leader.state() | learner.encoder.state()


def memory(model):
    """The sums that a model keeps."""
    return model._learner._leader._solver.memory


def assert_identical(one, other):
    """Bit for bit."""
    left, right = parts(one), parts(other)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def in_batches(model, rows, size):
    """Learn some rows of the stream."""
    rows = np.asarray(rows)
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        model.partial_fit(X[some], Y[some])
    return model
