"""Whatever goes in, a model either takes all of it or raises, says why, and stays as it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from losse import FTLRegressor, LosseEncoder
from tests.ftl.models import ENCODERS, X, Y, like, models, parts

# Each spoils good rows (X, Y) in one way; what it is called must appear in the message.
SPOILT = {
    "NaN": lambda X, Y, at: (spoil(X, at, np.nan), Y),
    "NaN ": lambda X, Y, at: (X, spoil(Y, at, np.nan)),
    "inf": lambda X, Y, at: (spoil(X, at, np.inf), Y),
    "inf ": lambda X, Y, at: (X, spoil(Y, at, -np.inf)),
    "features": lambda X, Y, at: (X[:, : 1 + at % 3], Y),
    "features ": lambda X, Y, at: (np.hstack([X, X]), Y),
    "outputs": lambda X, Y, at: (X, Y[:, : 1 + at % 2]),
    "outputs ": lambda X, Y, at: (X, np.hstack([Y, Y])),
    "outputs  ": lambda X, Y, at: (X, Y[:, 0]),
    "sample": lambda X, Y, at: (X[:0], Y[:0]),
    "rows": lambda X, Y, at: (X, np.vstack([Y, Y])),
    "rows ": lambda X, Y, at: (np.vstack([X, X]), Y),
    "masked": lambda X, Y, at: (np.ma.masked_array(X, X.flat[at % X.size] == X), Y),
    "masked ": lambda X, Y, at: (X, np.ma.masked_array(Y, Y.flat[at % Y.size] == Y)),
    "1D array": lambda X, Y, at: (X[0], Y[0]),
    "with dim 3": lambda X, Y, at: (X[:, :, None], Y),
    "dimensions": lambda X, Y, at: (X, Y[:, :, None]),
    "could not convert": lambda X, Y, at: (X.astype(str) + "a", Y),
    "could not convert ": lambda X, Y, at: (X, np.full(Y.shape, "much")),
    "omplex": lambda X, Y, at: (X + 1j, Y),
    "y=None": lambda X, Y, at: (X, None),
    "0-dimensional|scalar": lambda X, Y, at: (3.0, Y),
}


def spoil(A, at, value):
    A = A.copy()
    A.flat[at % A.size] = value
    return A


def frozen(model):
    return {name: np.copy(value) for name, value in parts(model).items()}


def assert_unchanged(model, before):
    after = parts(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


@given(
    model=models(),
    what=st.sampled_from(sorted(SPOILT)),
    method=st.sampled_from(["partial_fit", "unlearn", "predict"]),
    rows=st.integers(1, 30),
    at=st.integers(0, 10**6),
)
@settings(max_examples=150)
def test_a_spoilt_batch_changes_nothing(model, what, method, rows, at):
    model.fit(X, Y)
    before = frozen(model)
    bad_X, bad_Y = SPOILT[what](X[:rows], Y[:rows], at)
    arguments = (bad_X, bad_Y)
    if method == "predict":
        if what.strip() == "rows" or np.array_equal(bad_X, X[:rows]):
            return  # only the targets are bad
        arguments = (bad_X,)
    with pytest.raises((ValueError, TypeError), match=what.strip()):
        getattr(model, method)(*arguments)
    assert_unchanged(model, before)


@given(model=models(), what=st.sampled_from(sorted(SPOILT)), at=st.integers(0, 10**6))
@settings(max_examples=60)
def test_a_spoilt_restart_keeps_the_old_model(model, what, at):
    if what.strip() in ("features", "outputs"):
        return  # a new start may have others
    model.fit(X, Y)
    before = frozen(model)
    with pytest.raises((ValueError, TypeError), match=what.strip()):
        model.fit(*SPOILT[what](X[:50], Y[:50], at))
    assert_unchanged(model, before)


@given(
    weight=st.one_of(
        st.just(-1.0),
        st.just(0.0),
        st.just(np.nan),
        st.just(np.inf),
        st.just("heavy"),
        st.integers(1, 9).map(lambda n: np.ones(10 + n)),
        st.integers(0, 9).map(lambda k: np.where(np.arange(10) == k, -1.0, 1.0)),
        st.just(np.ones((10, 2))),
    ),
    method=st.sampled_from(["partial_fit", "unlearn", "fit"]),
)
def test_nonsense_weights_change_nothing(weight, method):
    model = FTLRegressor(ENCODERS[0], solver="dense", ridge=1e-5).fit(X, Y)
    before = frozen(model)
    with pytest.raises((ValueError, TypeError), match=r"sample_weight|could not convert"):
        getattr(model, method)(X[:10], Y[:10], sample_weight=weight)
    assert_unchanged(model, before)


@pytest.mark.parametrize(
    ("age", "message"),
    [
        (-1, "age has an entry"),
        (0.5, "age has an entry"),
        (np.nan, "age contains NaN"),
        (np.ones(3), r"age has shape \(3,\), expected \(10,\)"),
        ("old", "could not convert"),
    ],
)
def test_nonsense_ages_change_nothing(age, message):
    model = FTLRegressor(ENCODERS[0], discount=0.9, ridge=1e-5).fit(X, Y)
    before = frozen(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.unlearn(X[:10], Y[:10], age=age)
    assert_unchanged(model, before)


parameters = st.fixed_dictionaries(
    {},
    optional={
        "solver": st.sampled_from(["sparse", "magic", 3, None]),
        "ridge": st.sampled_from([1e-3, -1.0, 0, np.inf, np.nan, "x", None, True]),
        "discount": st.sampled_from([1.0, 0.5, 0, -1, 2, np.nan, "x", None]),
        "dtype": st.sampled_from(["float32", "int8", None, 3]),
        "n_grids": st.sampled_from([3, 0, -1, 2.5, "x", None, 10**12]),
        "n_bins": st.sampled_from([4, 0, -3, 1.5, None]),
        "grid_dim": st.sampled_from([1, 0, "two", 99]),
        "seed": st.sampled_from([0, -1, 0.5, None]),
        "scaling": st.sampled_from([None, "standard", "odd", (1, 0), (0, np.inf), 5, (0, 1, 2)]),
    },
)
GOOD = {
    "solver": ["sparse"],
    "ridge": [1e-3],
    "discount": [1.0, 0.5],
    "dtype": ["float32"],
    "n_grids": [3],
    "n_bins": [4],
    "grid_dim": [1],
    "seed": [0],
    "scaling": [None, "standard"],
}


def good(name, value):
    return any(type(value) is type(x) and value == x for x in GOOD[name])


@given(parameters=parameters)
@settings(max_examples=150)
def test_parameters_are_taken_or_named(parameters):
    encoder = {k: v for k, v in parameters.items() if k in LosseEncoder().get_params()}
    own = {k: v for k, v in parameters.items() if k not in encoder}
    model = FTLRegressor(
        LosseEncoder(**{"n_grids": 3, "n_bins": 4} | encoder), **{"ridge": 1e-5} | own
    )
    bad = [name for name, value in parameters.items() if not good(name, value)]
    if not bad:
        model.fit(X, Y)
        return
    with pytest.raises((ValueError, TypeError), match="|".join(f"{name}=" for name in bad)):
        model.fit(X, Y)
    assert not hasattr(model, "encoder_")


@pytest.mark.parametrize("method", ["predict", "unlearn", "save", "merge"])
def test_nothing_works_before_learning(method, tmp_path):
    model = FTLRegressor()
    other = like(model).fit(X, Y)
    arguments = {
        "predict": (X,),
        "unlearn": (X, Y),
        "save": (tmp_path / "model",),
        "merge": (other,),
    }
    with pytest.raises(ValueError, match="not fitted yet"):  # NotFittedError is a ValueError
        getattr(model, method)(*arguments[method])
    assert not list(tmp_path.iterdir())
