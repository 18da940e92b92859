"""`FTLRegressor` is a well-behaved scikit-learn regressor, with every encoder and solver."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from losse import FourierEncoder, FTLRegressor, LosseEncoder, ReLUEncoder, TileEncoder
from tests.ftl.reference import stream

X, Y = stream(240)
SMALL = LosseEncoder(n_grids=5)


@parametrize_with_checks(
    [
        FTLRegressor(ridge=1e-3),
        FTLRegressor(SMALL, solver="dense"),
        FTLRegressor(SMALL, solver="exact", dtype="float32"),
        FTLRegressor(FourierEncoder()),
        FTLRegressor(ReLUEncoder(), solver="sparse"),
        FTLRegressor(TileEncoder()),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def order_matters():
    """All checks but the one that changes the order of rows, for models that depend on it.

    The default does: of few rows, its ridge is cross-validated over stretches of the stream.
    """
    models = {
        "default": FTLRegressor(),
        "sparse": FTLRegressor(SMALL, solver="sparse", ridge=1e-5),
        "discount": FTLRegressor(SMALL, discount=0.99, ridge=1e-5),
    }
    for name, model in models.items():
        for estimator, check in estimator_checks_generator(model):
            if "sample_weight_equivalence" not in str(check):
                yield pytest.param(estimator, check, id=f"{name}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(order_matters()))
def test_models_for_which_order_matters(estimator, check):
    check(estimator)


def test_pipeline_learns_and_predicts():
    model = make_pipeline(StandardScaler(), FTLRegressor(LosseEncoder(scaling=None), ridge=1e-5))
    assert model.fit(X, Y).score(X, Y) > 0.9
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape


def test_encoder_in_a_pipeline_with_a_linear_model_of_scikit_learn():
    from sklearn.linear_model import Ridge

    ridge = Ridge(alpha=1e-3 * len(X), fit_intercept=False, solver="cholesky")
    model = make_pipeline(LosseEncoder(n_grids=10), ridge)
    ours = FTLRegressor(LosseEncoder(n_grids=10), solver="dense", ridge=1e-3)
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_allclose(ours.fit(X, Y).predict(X), expected, atol=1e-6)


def test_grid_search_over_model_and_encoder():
    search = GridSearchCV(
        FTLRegressor(LosseEncoder(n_grids=5), solver="dense", ridge=1e-5),
        {"ridge": [1e-5, 1e-2], "encoder__n_bins": [2, 4], "solver": ["dense", "exact"]},
        cv=2,
    ).fit(X, Y)
    assert search.best_params_.keys() == {"ridge", "encoder__n_bins", "solver"}
    assert search.predict(X).shape == Y.shape


def test_clone_is_new_and_alike():
    model = FTLRegressor(LosseEncoder(n_grids=4, seed=3), ridge=0.1).fit(X, Y)
    twin = clone(model)
    assert not hasattr(twin, "encoder_")
    assert twin.get_params()["encoder__seed"] == 3
    np.testing.assert_array_equal(twin.fit(X, Y).predict(X), model.predict(X))


def test_data_frames_bring_their_names():
    frame = pd.DataFrame(X, columns=["x", "y", "vx", "vy"])
    model = FTLRegressor(SMALL, ridge=1e-5).partial_fit(frame, pd.DataFrame(Y))
    assert list(model.feature_names_in_) == ["x", "y", "vx", "vy"]
    np.testing.assert_array_equal(
        model.predict(frame), FTLRegressor(SMALL, ridge=1e-5).fit(X, Y).predict(X)
    )
    for method in (model.predict, lambda X: model.partial_fit(X, Y), lambda X: model.unlearn(X, Y)):
        with pytest.raises(ValueError, match="feature names should match"):
            method(frame[["y", "x", "vx", "vy"]])
    model.unlearn(frame[:100], Y[:100]).partial_fit(frame[:100], Y[:100])
    assert model.n_samples_seen_ == 240


def test_frames_of_mixed_columns():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.repeat(["u", "v"], 120))
    columns = ColumnTransformer(
        [("numbers", MinMaxScaler((-3, 3)), list("abcd")), ("kind", OneHotEncoder(), ["kind"])],
        sparse_threshold=0.0,
    )
    model = make_pipeline(columns, FTLRegressor(LosseEncoder(scaling=None), ridge=1e-5))
    assert model.fit(frame, Y).score(frame, Y) > 0.9


def test_transformed_targets():
    y = np.exp(Y[:, 0])
    model = TransformedTargetRegressor(
        FTLRegressor(), transformer=QuantileTransformer(n_quantiles=50)
    )
    assert model.fit(X, y).score(X, y) > 0.5
    logs = TransformedTargetRegressor(FTLRegressor(), func=np.log, inverse_func=np.exp)
    np.testing.assert_allclose(
        logs.fit(X, y).predict(X), np.exp(FTLRegressor().fit(X, Y[:, 0]).predict(X)), rtol=1e-5
    )  # what rounding does to the logarithms grows with the condition of the fit


def test_cross_validation_and_one_model_per_output():
    assert len(cross_val_score(FTLRegressor(SMALL, ridge=1e-5), X, Y, cv=3)) == 3
    apart = MultiOutputRegressor(FTLRegressor(SMALL, solver="dense", ridge=1e-5)).fit(X, Y)
    together = FTLRegressor(SMALL, solver="dense", ridge=1e-5).fit(X, Y)
    np.testing.assert_allclose(apart.predict(X), together.predict(X), atol=1e-8)
