"""`FTLRegressor`: the scikit-learn face of follow-the-leader regression."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields
from operator import attrgetter, is_
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from losse.checks import (
    check_ages,
    check_inner_share,
    check_inputs,
    check_targets,
    check_weights,
    remember_inputs,
)  # fmt: skip
from losse.encoders import Encoder
from losse.encoders import registry as encoders
from losse.ftl import checkpoint
from losse.ftl.fitted import FittedAttributes
from losse.ftl.kept_rows import Rows
from losse.ftl.leader import Predictor
from losse.ftl.learner import Learner
from losse.ftl.settings import Settings, Source
from losse.interrupts import deferred_interrupts
from losse.locking import locked
from losse.storage.archive import Progress
from losse.storage.state import State, StateReader
from losse.typing import Array

_PARAMETERS = attrgetter(*(field.name for field in fields(Settings)))


class FTLRegressor(FittedAttributes, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression on sparse features that follows the leader (section 3 of the paper).

    After n samples the weights minimise, or approach the minimum of,

    .. math:: \sum_i \|y_i - W^T \phi(x_i)\|^2 + \varepsilon n \|W\|^2,

    the fit of *all* data so far, in one pass and without keeping them: two sums,
    :math:`A = \sum \phi \phi^T` and :math:`B = \sum \phi y^T`, hold everything that matters.

    Parameters
    ----------
    encoder
        What makes the features; None for ``AdaptiveEncoder()``. One that is fitted already is
        copied as it is. Otherwise a clone is fitted on the first data and stays frozen; if it
        learns from targets, as ``AdaptiveEncoder`` does, on the first ``warm_up`` rows, and for
        the time being on fewer. Until then the model keeps its rows.
    solver
        ``"sparse"``: Algorithm 2, row by row, only the active weights. ``"dense"``: Algorithm 1,
        all weights by one factorisation per call. ``"exact"``: within 1 % of the smallest possible
        objective after every call, without a factorisation each time. ``"auto"``: the same, except
        that models of more than 8192 features with more than 1500 samples approach the leader by
        two conjugate-gradient iterations per call; the largest ones once enough rows have come to
        pay for them, 211 at 300 grids and 16 outputs. With a dense encoder all features are active,
        so ``"sparse"`` is the same as ``"dense"``.
    ridge
        epsilon, above zero. ``"auto"``: the one whose predictions before learning are best; it
        is reviewed whenever rows are half as many again. What is below 1e-10, out of reach of
        double precision, counts as 1e-10 in ``"exact"`` and ``"auto"``.
    discount
        Below one, a sample's weight shrinks by this factor with each sample that follows, for
        dynamics that change.
    past
        Where to get rows for building an encoder that is not fitted anew, at each doubling of
        ``warm_up`` rows: a number of rows that the model keeps, or a function that returns
        all rows so far, oldest first and with those of the call under way, as (X, y) or
        (X, y, sample_weight). If these are only a part, they weigh as much as all; if it returns
        None, the build is put off. None: the encoder is final after its warm-up. A function is not
        saved.
    center
        Whether predictions are pulled towards the mean of all targets so far (True), so that a
        constant added to the targets is only added to the predictions; or towards zero (False), as
        in the paper. ``"auto"``: True, unless both an encoder that does not learn from targets
        and a ridge are given.
    dtype
        Of the memory A, ``"float64"`` or ``"float32"``. The latter is half the size, but stops
        taking in new samples after some ten million visits to a cell.

    Attributes
    ----------
    encoder_
        The encoder in use.
    weights_
        W, of shape (D, n_outputs).
    intercept_
        What is added to W^T phi: the mean of the targets, or zero if they are not centred.
    n_samples_seen_
        Rows learned.
    ridge_, prequential_, prequential_error_, regret_
        The ridge in use, and how well the model has predicted rows before it learned them.
    certificate_
        Bound on how far the weights are from the best fit.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import FTLRegressor, LosseEncoder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 2))
    >>> Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    >>> model = FTLRegressor(LosseEncoder(scaling=(-3, 3)))
    >>> for start in range(0, 1900, 100):  # a stream: each batch is seen once
    ...     _ = model.partial_fit(X[start:start + 100], Y[start:start + 100])
    >>> model.n_samples_seen_
    1900
    >>> round(float(model.score(X[1900:], Y[1900:])), 2)
    1.0
    """

    n_features_in_: int
    _single: bool

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        solver: str = "auto",
        ridge: float | str = "auto",
        discount: float = 1.0,
        past: int | Source | None = None,
        center: bool | str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.encoder = encoder
        self.solver = solver
        self.ridge = ridge
        self.discount = discount
        self.past = past
        self.center = center
        self.dtype = dtype

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from ``X`` and ``y`` alone, forgetting what was learned before."""
        return self._learn(X, y, sample_weight, reset=True)

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from more rows: one, or a batch of any size.

        A call happens entirely or not at all: Ctrl-C waits until the rows are learned.
        """
        with self.lock:  # of two threads that begin, one is the first
            return self._learn(X, y, sample_weight, reset=not hasattr(self, "_learner"))

    @overload
    def predict(self, X: npt.ArrayLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: npt.ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: npt.ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        r"""Predicted targets, one row (or, for 1-d targets, one number) per row of ``X``.

        With ``return_std`` also their standard deviations, those of Bayesian linear regression,
        :math:`\hat\sigma \sqrt{1 + \phi^T (A + \lambda I)^{-1} \phi}`: noise, and what the data
        leave open. The first such call inverts A, some :math:`D^3` operations; while samples are
        few, nothing. The inverse then follows every row. It is made anew when the number of rows
        has grown by 15 percent, since the ridge counts per row, and the noise when it has grown by
        one percent. Models of more than 8192 features with more than 1500 samples iterate instead,
        up to 300 passes through A for every eight rows.

        While another thread changes the model, predictions without ``return_std`` do not wait for
        it: they are those of the moment before the change.

        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 200)[:, None]
        >>> model = FTLRegressor().fit(X, X[:, 0])
        >>> mean, std = model.predict(X[:3], return_std=True)
        >>> mean.shape, std.shape
        ((3,), (3,))
        """
        if not hasattr(self, "_learner"):
            check_is_fitted(self)
        if not return_std:
            return self.read(lambda view: self._predicted(X, *view))
        with self.lock:
            rows = check_inputs(self, X, reset=False)
            mean, std = self._learner.predict_std(rows)
            return _shaped(mean, self._single), _shaped(std, self._single)

    def predict_interval(self, X: npt.ArrayLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper bounds between which a share of new targets are expected to be.

        An interval has the prediction in its middle. How wide it is, each output has learned from
        its latest errors, up to 2000, for rows that were not learned yet: how heavy their tails
        are, how errors grow for rows unlike those learned, and how they fall as the model learns
        (`losse.ftl.intervals`). While they are few, as after a single `fit` of less than 1000 rows,
        it is nearly the normal one of ``return_std``. The cost is that of ``return_std``, and other
        threads wait alike. The solvers ``"sparse"`` and ``"dense"``, and models of more than 8192
        features with more than 1500 samples, learn the tails alone.

        Parameters
        ----------
        X, coverage
            Inputs, and the share of targets, between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from losse import FTLRegressor, LosseEncoder
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(3000, 1))
        >>> y = X[:, 0] + rng.laplace(scale=0.1, size=3000)
        >>> model = FTLRegressor(LosseEncoder(grid_dim=1))
        >>> for start in range(0, 2000, 50):
        ...     _ = model.partial_fit(X[start:start + 50], y[start:start + 50])
        >>> low, high = model.predict_interval(X[2000:], coverage=0.8)
        >>> round(float(np.mean((low <= y[2000:]) & (y[2000:] <= high))), 1)
        0.8
        """
        check_inner_share("coverage", coverage)
        check_is_fitted(self)
        with self.lock:
            rows = check_inputs(self, X, reset=False)
            low, high = self._learner.predict_interval(rows, float(coverage))
            return _shaped(low, self._single), _shaped(high, self._single)

    def _predicted(self, X: npt.ArrayLike, learned: Learner | Predictor, single: bool) -> Array:
        rows = check_inputs(self, X, reset=False)
        if rows.shape[1] != learned.n_features:  # `fit` is changing to others
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model {learned.n_features} at present."
            )
        return _shaped(learned.predict(rows), single)

    def _live(self) -> tuple[Learner, bool]:
        return self._learner, self._single

    def _snapshot(self) -> tuple[Predictor, bool] | None:
        return (self._learner.frozen(), self._single) if hasattr(self, "_learner") else None

    def unlearn(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        age: npt.ArrayLike | None = None,
    ) -> Self:
        """Remove rows that were learned, as if they had never been.

        The memories are exactly those of the rest, and the weights become its leader, whatever
        the solver (models of more than 8192 features approach it by iteration, unless
        ``solver="dense"``). Rows that cannot be part of what was learned are refused, and the model
        stays as it is; rows that were not learned but look like those that were cannot be told
        from them.

        Parameters
        ----------
        X, y, sample_weight
            As they were learned.
        age
            With ``discount`` below one, the number of rows learned after each of these; None for
            the latest rows, in the order in which they were learned. Time is not turned back: the
            weights of all other rows stay as they are.

        Examples
        --------
        >>> import numpy as np
        >>> from losse import FTLRegressor, LosseEncoder
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> y = np.sin(X[:, 0])
        >>> encoder = LosseEncoder(n_grids=5).fit(X)
        >>> model = FTLRegressor(encoder, ridge=1e-5).fit(X, y).unlearn(X[200:], y[200:])
        >>> without = FTLRegressor(encoder, ridge=1e-5).fit(X[:200], y[:200])
        >>> bool(np.allclose(model.predict(X), without.predict(X), atol=0.02))
        True
        """
        check_is_fitted(self)
        with self.changing():
            rows, counted, _ = self._checked(X, y, sample_weight, self.n_outputs_)
            ages = check_ages(age, len(counted))[counted]
            if len(rows) > self.n_samples_seen_:
                raise ValueError(
                    f"X has {len(rows)} rows to unlearn, but only {self.n_samples_seen_} were "
                    "learned: pass only rows that were learned, each once."
                )
            self._learner.unlearn(rows, ages)
        return self

    def merge(self, other: FTLRegressor) -> Self:
        """Add what another model has learned, as if this one had learned its rows, too.

        Both must have the same fitted encoder and the same outputs; give both the same
        encoder, fitted or with ``scaling=None`` or bounds. ``other`` stays as it is. This
        model keeps its own ridge, solver, discount and precision; under a discount, both models'
        latest rows are equally recent. `losse.ftl.merge_all` merges many.

        >>> import numpy as np
        >>> from losse import FTLRegressor, LosseEncoder
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> y = np.sin(X[:, 0])
        >>> encoder = LosseEncoder(n_grids=5).fit(X)
        >>> parts = [FTLRegressor(encoder).fit(X[k::2], y[k::2]) for k in (0, 1)]
        >>> parts[0].merge(parts[1]).n_samples_seen_
        300
        """
        self._require_regressor(other)
        with locked(self, other), self.changing(), deferred_interrupts():
            self._absorb(other)
            self._solve()
        return self

    @classmethod
    def merged(cls, models: Iterable[FTLRegressor]) -> FTLRegressor:
        """One new model that has learned everything that these have; see `losse.ftl.merge_all`."""
        merged: FTLRegressor | None = None
        for model in models:
            cls._require_regressor(model)
            with model.lock:
                merged = cls._empty_like(model) if merged is None else merged
                cls._absorb(merged, model)
        if merged is None:
            raise ValueError("models is empty: pass at least one fitted FTLRegressor.")
        cls._solve(merged)
        return merged

    def _absorb(self, other: FTLRegressor) -> None:
        """Add what another model has learned; the weights are still to follow."""
        self._require_mergeable(other)
        self._learner.absorb(other._learner)

    def _solve(self) -> None:
        self._learner.solve()

    def _empty_like(self) -> Self:
        """A model with the same parameters, encoder and outputs that has learned nothing yet."""
        check_is_fitted(self)
        empty = type(self)(**self.get_params(deep=False))
        inputs = {key: value for key, value in vars(self).items() if key.endswith("_in_")}
        empty.__dict__.update(deepcopy(inputs), _single=self._single)
        empty._learner = self._learner.empty_like()
        return empty

    @staticmethod
    def _require_regressor(other: Any) -> None:
        if not isinstance(other, FTLRegressor):
            raise TypeError(f"other={other!r} is not an FTLRegressor: only those can be merged.")

    def _require_mergeable(self, other: FTLRegressor) -> None:
        """Raise unless the sums of both models are over the same features and outputs."""
        check_is_fitted(self)
        check_is_fitted(other)
        if checkpoint.names_of(self) != checkpoint.names_of(other):
            raise ValueError(
                "other.feature_names_in_ differs from this model's: give both the same columns."
            )
        if self._single != other._single:
            mine, theirs = ("1-d" if one else "2-d" for one in (self._single, other._single))
            raise ValueError(
                f"other has {theirs} targets, but this model {mine} ones: both must learn the same."
            )
        self._learner.require_mergeable(other._learner)

    def save(self, path: str | os.PathLike[str], progress: bool | Progress = True) -> None:
        """Write the model to a file, which `load` reads.

        The file is replaced only when the new one is complete and on the disk: a crash in
        between leaves the old one. It holds no code (no pickle), knows its version, and is
        checksummed. A model that is loaded goes on exactly, bit for bit, as the one that was saved.

        Parameters
        ----------
        path
            Of the file. Its folder must exist.
        progress
            Whether to show a line of progress on a terminal, if it takes a while; or a function
            that gets the bytes written and the bytes in all.

        Examples
        --------
        >>> import tempfile, os, numpy as np
        >>> path = os.path.join(tempfile.mkdtemp(), "model.losse")
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = FTLRegressor().fit(X, X)
        >>> model.save(path)
        >>> bool((FTLRegressor.load(path).predict(X) == model.predict(X)).all())
        True
        """
        check_is_fitted(self)
        with self.lock:
            checkpoint.write(path, self._state(), progress)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: bool | Progress = True) -> Self:
        """Read a model that `save` has written.

        A file that is damaged, foreign, too new or makes no sense raises
        `losse.storage.ArchiveError`, a `ValueError`, that says what is wrong with it.
        """
        model = cls()
        with checkpoint.opened(path, progress) as saved:
            model._restore(saved)
        return model

    def _state(self) -> State:
        """Values for a checkpoint."""
        learner, given = self._learner, self.encoder
        return (
            learner.settings.state()
            | learner.state()
            | {
                "given_encoder": None if given is None else encoders.describe(given),
                "given_fitted": given is not None and given.fitted,
                "encoder_names": checkpoint.names_of(learner.encoder),
                "names": checkpoint.names_of(self),
                "single": self._single,
            }
        )

    def _restore(self, saved: StateReader) -> None:
        """Take over what `_state` has returned."""
        settings = Settings.read(saved)
        learner = Learner.read(settings, saved)
        self.set_params(**settings.parameters)
        if saved.value("given_encoder") is None:
            self.encoder = None
        elif saved.flag("given_fitted"):
            self.encoder = deepcopy(learner.encoder)
        self.n_features_in_ = learner.n_features
        checkpoint.take_names(learner.encoder, saved, "encoder_names")
        checkpoint.take_names(self, saved, "names")
        self._single = saved.flag("single")
        if self._single and learner.n_outputs > 1:
            saved.refuse(f"single is true, but n_outputs={learner.n_outputs}")
        self._learner = learner

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        self._check_parameters()
        n_outputs = None if reset else self.n_outputs_
        rows, _, single = self._checked(X, y, sample_weight, n_outputs)
        with self.changing():
            if reset:
                learner = Learner(Settings.of(self), rows)
                with deferred_interrupts():
                    remember_inputs(self, X)
                    self._learner, self._single = learner, single
            else:
                self._learner.use_past(self.past)  # all other parameters count from the next `fit`
                self._learner.learn(rows)
        return self

    def _check_parameters(self) -> None:
        """Raise if a parameter makes no sense; those that were checked before are not again."""
        given = _PARAMETERS(self)
        checked = self.__dict__.get("_checked_parameters")
        if checked is None or not all(map(is_, given, checked)):
            Settings.of(self).check()
            self._checked_parameters = given

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, n_outputs: int | None
    ) -> tuple[Rows, npt.NDArray[np.bool_], bool]:
        """Rows that count, which ones do, and whether targets are single numbers.

        ``n_outputs`` is None in a model that begins.
        """
        inputs = check_inputs(self, X, reset=n_outputs is None)
        targets = check_targets(y, len(inputs), n_outputs)
        weights = check_weights(sample_weight, len(inputs), self)
        rows = Rows(inputs, targets.reshape(len(inputs), -1), weights)
        counted = weights > 0
        rows = rows if sample_weight is None or counted.all() else rows.take(counted)
        return rows, counted, targets.ndim == 1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        return tags


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
    return FTLRegressor.merged(models)


def _shaped(rows: Array, single: bool) -> Array:
    """Rows of numbers, or single numbers, in memory that nothing else holds on to."""
    return rows[:, 0].copy() if single else np.ascontiguousarray(rows)
