"""Many models become one: memories are sums, so what was learned apart adds up exactly."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from losse.encoders import Encoder
from losse.ftl import learning
from losse.ftl.construction import new_solver
from losse.ftl.past import Past
from losse.ftl.prequential import Prequential
from losse.ftl.ridges import new_contest

if TYPE_CHECKING:
    from losse.ftl.regressor import FTLRegressor


def merge_all(models: Iterable[FTLRegressor]) -> FTLRegressor:
    """One new model that has learned everything that these have.

    All must share one fitted encoder: fit it once, and give it to each. The models may come from
    other processes, or one after the other from a generator, such as
    ``merge_all(map(FTLRegressor.load, paths))``; then no more than two are in memory at a time.
    They stay as they are. The result has the parameters of the first.

    >>> import numpy as np
    >>> from losse import FTLRegressor, LosseEncoder
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.sin(X[:, 0])
    >>> encoder = LosseEncoder(n_grids=5).fit(X)
    >>> shards = [FTLRegressor(encoder, ridge=1e-5).fit(X[k::3], y[k::3]) for k in range(3)]
    >>> whole = FTLRegressor(encoder, solver="dense", ridge=1e-5).fit(X, y)
    >>> bool(np.allclose(merge_all(shards).predict(X), whole.predict(X)))
    True
    """
    merged: FTLRegressor | None = None
    for model in models:
        if merged is None:
            require_mergeable(model, model)
            merged = empty_like(model)
        require_mergeable(merged, model)
        with model._guard:
            absorb(merged, model)
    if merged is None:
        raise ValueError("models is empty: pass at least one fitted FTLRegressor.")
    merged._solver.renew()
    return merged


def empty_like(model: FTLRegressor) -> FTLRegressor:
    """A model with the same parameters, encoder and outputs that has learned nothing yet."""
    empty = type(model)(**model.get_params(deep=False))
    with model._guard:
        fitted = {key: value for key, value in vars(model).items() if key.endswith("_")}
        empty.__dict__.update(deepcopy(fitted), _single=model._single, n_samples_seen_=0)
        empty._weight = 1.0
        empty._solver = new_solver(model, model.encoder_, model.n_outputs_, model.ridge_)
        empty._contest = new_contest(model)
        empty._prequential = Prequential(model.n_outputs_)
        empty._past = None
        if model._past is not None:
            empty._past = Past(model.n_features_in_, model.n_outputs_)
        empty._built, empty._posterior = 0 if empty._past else model._built, None
    return empty


def absorb(model: FTLRegressor, other: FTLRegressor) -> None:
    """Add what ``other`` has learned; the weights are to be renewed."""
    factor = model._weight / other._weight
    model._prequential.loss += factor * other._prequential.loss
    if other._past is not None:  # it has all its rows: no need for the same features
        rows = other._past.rows
        learning.relearn(model, rows.weighing(rows.weights * factor))
        return
    model._solver.absorb(other._solver, factor)
    if model._contest is not None:
        model._contest.stop()
    model._posterior = None
    model.n_samples_seen_ += other.n_samples_seen_


def require_mergeable(model: FTLRegressor, other: Any) -> None:
    """Raise unless the sums of both models are over the same features and outputs."""
    from losse.ftl.regressor import FTLRegressor

    if not isinstance(other, FTLRegressor):
        raise TypeError(f"other={other!r} is not an FTLRegressor: only those can be merged.")
    check_is_fitted(model)
    check_is_fitted(other)
    mine, theirs = model.encoder_, other.encoder_
    if other._past is not None:
        if mine.n_features_in_ != theirs.n_features_in_:
            raise ValueError(
                f"other has {theirs.n_features_in_} input features, but this model "
                f"{mine.n_features_in_}: both must learn from the same inputs."
            )
    elif model._past is not None:
        raise ValueError(
            f"other.encoder_={theirs!r} is final, but this model still learns its own: merge the "
            "other way round, other.merge(model), or begin this one with FTLRegressor(encoder="
            "other.encoder_)."
        )
    elif not same_encoder(mine, theirs):
        raise ValueError(
            f"other.encoder_={theirs!r} is not the same as this model's {mine!r}, or was fitted on "
            "other data: fit one encoder and pass it to every model that is to be merged, or one "
            "model's encoder_ to the others."
        )
    if _names(model) != _names(other):
        raise ValueError(
            "other.feature_names_in_ differs from this model's: give both the same columns."
        )
    if (model.n_outputs_, model._single) != (other.n_outputs_, other._single):
        raise ValueError(
            f"other has {other.n_outputs_} output(s) in {_shape(other)} targets, but this model "
            f"{model.n_outputs_} in {_shape(model)} ones: both must learn the same targets."
        )


def same_encoder(one: Encoder, other: Encoder) -> bool:
    """Whether two fitted encoders make the same features."""
    return one is other or (
        type(one) is type(other)
        and one.dimension == other.dimension
        and all(np.array_equal(value, other.state()[name]) for name, value in one.state().items())
    )


def _names(model: FTLRegressor) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def _shape(model: FTLRegressor) -> str:
    return "1-d" if model._single else "2-d"
