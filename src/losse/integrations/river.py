"""Losse for River: `LosseRegressor` and `LosseMultiTargetRegressor`."""

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from losse.encoders import LosseEncoder
from losse.extras import missing
from losse.integrations.named import GRID_DIM, NamedRegression, Sample
from losse.interrupts import deferred_interrupts
from losse.typing import Array

try:
    from river import base
    from river.utils.dataframe import into_frame, to_native_frame, to_native_series
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "river":
        raise
    raise missing("losse.integrations.river", "river") from error

LARGEST = 1e100
"""Beyond this, squares leave the range of doubles."""

Features = Mapping[Hashable, Any]


class _Losse(base.Estimator):
    """Parameters and state of both regressors."""

    def __init__(
        self,
        n_grids: int = 50,
        n_bins: int = 4,
        solver: str = "sparse",
        ridge: float = 1e-3,
        discount: float = 1.0,
        warm_up: int = 1000,
        seed: int = 0,
    ) -> None:
        self.n_grids = n_grids
        self.n_bins = n_bins
        self.solver = solver
        self.ridge = ridge
        self.discount = discount
        self.warm_up = warm_up
        self.seed = seed
        self._model: NamedRegression | None = None

    def _learn(self, samples: Sequence[Sample]) -> None:
        model = self._model or NamedRegression(
            LosseEncoder(self.n_grids, self.n_bins, GRID_DIM, seed=self.seed),
            warm_up=self.warm_up,
            solver=self.solver,
            ridge=self.ridge,
            discount=self.discount,
        )
        with model.lock, deferred_interrupts():
            for sample in samples:
                if sample.weight > 0:
                    model.learn(sample)
                    self._model = model  # a first one that fails, on a bad parameter, leaves none


class LosseRegressor(_Losse, base.MiniBatchRegressor):
    r"""Follow-the-leader regression on locality sensitive sparse features.

    Inputs are encoded as sparse vectors that respond only to their neighbourhood, and
    the weights follow the least-squares fit of all samples so far, at a constant cost per sample.
    What was learned in one region stays as it is while the stream moves on to another.

    Features may come, go and change their order at any time: the random directions of a feature
    derive from the seed and its name. A feature that a sample lacks counts as its mean. Inputs need
    no scaler before the model. Their means and spreads, and the mean target, come from the first
    ``warm_up`` samples. These are kept, and learned anew whenever their number has doubled: twice
    the work in all, but some calls take as long as hundreds of others. Then they are dropped, and
    features that appear from there on count after 32 values.

    The defaults were chosen by the mean absolute error on streams that are not part of the
    published comparison; the documentation names them.

    Parameters
    ----------
    n_grids
        Number of grids, kappa.
    n_bins
        Bins along each of the two axes of a grid, lambda.
    solver
        ``"sparse"``: the paper's update of the active weights, the same cost for every sample.
        ``"exact"``: within 1 % of the best possible fit, at about twice the cost. Others
        are those of `losse.FTLRegressor`.
    ridge
        Regularisation, epsilon. More for noisy targets, less for clean ones.
    discount
        Below one, a sample's weight shrinks by this factor with each sample that follows, for
        targets that drift; 0.995 remembers some two hundred samples.
    warm_up
        Samples kept until the scaling is frozen.
    seed
        Of the random directions. The same seed gives the same model in every process.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from river.datasets import synth
    >>> from losse.integrations.river import LosseRegressor
    >>> stream = synth.Planes2D(seed=42).take(500)
    >>> evaluate.progressive_val_score(stream, LosseRegressor(), metrics.MAE())
    MAE: 1.5...

    References
    ----------
    Liu, Du, Lee and Lin, "Locality Sensitive Sparse Encoding for Learning World Models Online",
    ICLR 2024.
    """

    def learn_one(self, x: Features, y: float, w: float = 1.0) -> None:
        """Learn from the features ``x`` with target ``y``, which counts ``w`` times."""
        self._learn([Sample(_features(x), _targets({"y": y}), _weight(w))])

    def predict_one(self, x: Features) -> float:
        """The predicted target; 0 before anything was learned."""
        return float(self._predict([_features(x)])[0])

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a data frame, one after the other, as `learn_one` does."""
        xs = _rows(X)
        ys = _same_length("y", list(np.asarray(y)), len(xs))
        ws = _weights(w, len(xs))
        self._learn([Sample(x, _targets({"y": t}), k) for x, t, k in zip(xs, ys, ws, strict=True)])

    def predict_many(self, X: Any) -> Any:
        """The predicted targets of a data frame, as a series."""
        return to_native_series(self._predict(_rows(X)), name=None, like=into_frame(X))

    def _predict(self, xs: Sequence[dict[Hashable, float]]) -> Array:
        if self._model is None or not xs:
            return np.zeros(len(xs))
        with self._model.lock:
            return self._model.predict(xs)[:, 0]


class LosseMultiTargetRegressor(_Losse, base.MultiTargetRegressor):
    """`LosseRegressor` for several targets, which share one encoding and one memory.

    Parameters are those of `LosseRegressor`. The first sample says which targets there are; samples
    with others are refused.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from losse.integrations.river import LosseMultiTargetRegressor
    >>> model = preprocessing.OneHotEncoder() | LosseMultiTargetRegressor(ridge=0.1, seed=42)
    >>> metric = metrics.multioutput.MicroAverage(metrics.MAE())
    >>> evaluate.progressive_val_score(datasets.SolarFlare().take(500), model, metric)
    MicroAverage(MAE): 0...
    """

    _names: tuple[Hashable, ...] = ()

    def learn_one(  # type: ignore[override]  # River has **kwargs, which would hide mistakes
        self, x: Features, y: Mapping[Hashable, float], w: float = 1.0
    ) -> None:
        """Learn from the features ``x`` with targets ``y``, which count ``w`` times."""
        self._learn_named([_features(x)], [y], [_weight(w)])

    def predict_one(self, x: Features) -> dict[Hashable, float]:
        """The predicted targets by name; none before anything was learned."""
        return dict(zip(self._names, self._predict([_features(x)])[0].tolist(), strict=True))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of two data frames, one after the other, as `learn_one` does."""
        xs, frame = _rows(X), into_frame(y)
        ys = [dict(zip(frame.columns, row, strict=True)) for row in frame.to_numpy()]
        self._learn_named(xs, _same_length("y", ys, len(xs)), _weights(w, len(xs)))

    def predict_many(self, X: Any) -> Any:
        """The predicted targets of a data frame, one column each."""
        values = self._predict(_rows(X))
        return to_native_frame(values, columns=self._names, like=into_frame(X))

    def _learn_named(
        self,
        xs: Sequence[dict[Hashable, float]],
        ys: Sequence[Mapping[Hashable, float]],
        ws: Sequence[float],
    ) -> None:
        if not xs:
            return
        names = self._names or tuple(ys[0])
        if not names:
            raise ValueError("y={} has no target: give at least one, by name.")
        samples = [
            Sample(x, _targets(_known(y, names)), w) for x, y, w in zip(xs, ys, ws, strict=True)
        ]
        self._learn(samples)
        if self._model is not None:
            self._names = names

    def _predict(self, xs: Sequence[dict[Hashable, float]]) -> Array:
        if self._model is None or not xs:
            return np.zeros((len(xs), len(self._names)))
        with self._model.lock:
            return self._model.predict(xs)


def _features(x: Features) -> dict[Hashable, float]:
    remedy = "encode it (preprocessing.OneHotEncoder), impute it or leave the feature out"
    return {name: _number(f"feature {name!r}", value, remedy) for name, value in x.items()}


def _targets(y: Mapping[Hashable, Any]) -> Array:
    remedy = "leave such samples out"
    return np.array([_number(f"target {name!r}", value, remedy) for name, value in y.items()])


def _weight(w: Any) -> float:
    weight = _number("weight w", w, "give a number of at least 0")
    if weight < 0:
        raise ValueError(f"weight w={w!r} is negative: give a number of at least 0.")
    return weight


def _number(what: str, value: Any, remedy: str) -> float:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"{what}={value!r} is not a number: {remedy}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:
        raise ValueError(f"{what}={value!r} is not a number within +-{LARGEST:g}: {remedy}.")
    return number


def _known(y: Mapping[Hashable, Any], names: tuple[Hashable, ...]) -> dict[Hashable, Any]:
    """The targets in the order of ``names``."""
    if y.keys() != set(names):
        new = sorted(map(repr, y.keys() - set(names)))
        missing = sorted(map(repr, set(names) - y.keys()))
        raise ValueError(
            f"y has other targets than before (new: {', '.join(new) or 'none'}; "
            f"missing: {', '.join(missing) or 'none'}): use a new model for other targets."
        )
    return {name: y[name] for name in names}


def _rows(X: Any) -> list[dict[Hashable, float]]:
    frame = into_frame(X)
    return [_features(dict(zip(frame.columns, row, strict=True))) for row in frame.to_numpy()]


def _weights(w: Any, n_rows: int) -> list[float]:
    given = [w] * n_rows if isinstance(w, Real) else _same_length("w", list(w), n_rows)
    return [_weight(value) for value in given]


def _same_length(name: str, values: list[Any], n_rows: int) -> list[Any]:
    if len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} rows, but X has {n_rows}: give one per row.")
    return values
