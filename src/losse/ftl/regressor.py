"""`FTLRegressor`: the scikit-learn face of follow-the-leader regression."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from losse.checks import (
    check_ages,
    check_inputs,
    check_targets,
    check_weights,
    remember_inputs,
)
from losse.encoders import Encoder
from losse.ftl import checkpoint, learning, merging
from losse.ftl.construction import check_parameters
from losse.ftl.past import Past, Source
from losse.ftl.posterior import Posterior, new_posterior
from losse.ftl.prequential import Curve, Prequential
from losse.ftl.ridges import Contest
from losse.ftl.solver import Solver
from losse.storage.archive import Progress
from losse.typing import Array


class FTLRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
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
        two conjugate-gradient iterations per call. With a dense encoder all features are
        active, so ``"sparse"`` is the same as ``"dense"``.
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
        all rows learned so far, oldest first, as (X, y) or (X, y, sample_weight). If these are only
        a part, they weigh as much as all. None: the encoder is final after its warm-up. A
        function is not saved.
    dtype
        Of the memory A, ``"float64"`` or ``"float32"``. The latter is half the size, but stops
        taking in new samples after some ten million visits to a cell.

    Attributes
    ----------
    encoder_
        The encoder in use.
    weights_
        W, of shape (D, n_outputs).
    n_samples_seen_
        Rows learned.
    ridge_, prequential_, prequential_error_, regret_
        The ridge in use, and how well the model has predicted rows before it learned them.

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

    encoder_: Encoder
    n_features_in_: int
    n_outputs_: int
    n_samples_seen_: int
    _solver: Solver
    _posterior: Posterior | None
    _contest: Contest | None
    _prequential: Prequential
    _past: Past | None
    _built: int
    _single: bool
    _weight: float

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        solver: str = "auto",
        ridge: float | str = "auto",
        discount: float = 1.0,
        past: int | Source | None = None,
        dtype: str = "float64",
    ) -> None:
        self.encoder = encoder
        self.solver = solver
        self.ridge = ridge
        self.discount = discount
        self.past = past
        self.dtype = dtype

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from ``X`` and ``y`` alone, forgetting what was learned before."""
        return self._learn(X, y, sample_weight, reset=True)

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from more rows: one, or a batch of any size."""
        return self._learn(X, y, sample_weight, reset=not hasattr(self, "_solver"))

    @overload
    def predict(self, X: npt.ArrayLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: npt.ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: npt.ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        r"""Predicted targets, one row (or, for 1-d targets, one number) per row of ``X``.

        With ``return_std`` also their standard deviations, those of Bayesian linear regression,
        :math:`\hat\sigma \sqrt{1 + \phi^T (A + \lambda I)^{-1} \phi}`: noise, and what the data
        leave open. The first such call after learning factorises A, some :math:`D^3` operations,
        or less while samples are few. Models of more than 8192 features with more than 1500
        samples iterate instead, up to 300 passes through A for every eight rows.

        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 200)[:, None]
        >>> model = FTLRegressor().fit(X, X[:, 0])
        >>> mean, std = model.predict(X[:3], return_std=True)
        >>> mean.shape, std.shape
        ((3,), (3,))
        """
        if not hasattr(self, "_solver"):
            check_is_fitted(self)
        with self._guard:
            X = check_inputs(self, X, reset=False)
            predictions = self._shaped(learning.predict(self, X))
            return (predictions, self._deviations(X)) if return_std else predictions

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
        with self._guard:
            inputs = check_inputs(self, X, reset=False)
            targets = check_targets(y, len(inputs), self.n_outputs_)
            weights = check_weights(sample_weight, len(inputs))
            ages = check_ages(age, len(inputs))
            counted = weights > 0
            if counted.sum() > self.n_samples_seen_:
                raise ValueError(
                    f"X has {counted.sum()} rows to unlearn, but only {self.n_samples_seen_} were "
                    "learned: pass only rows that were learned, each once."
                )
            weights = weights * self.discount**ages * self._weight
            learning.unlearn(self, inputs[counted], targets[counted], weights[counted])
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
        merging.require_mergeable(self, other)
        # Always in the same order, or two threads could wait for each other.
        first, second = (self, other) if id(self) < id(other) else (other, self)
        with first._guard, second._guard:
            merging.absorb(self, other)
            self._solver.renew()
        return self

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
        with self._guard:
            checkpoint.save(self, path, progress)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: bool | Progress = True) -> Self:
        """Read a model that `save` has written.

        A file that is damaged, foreign, too new or makes no sense raises
        `losse.storage.archive.ArchiveError`, a `ValueError`, that says what is wrong with it.
        """
        model = cls()
        checkpoint.load(model, path, progress)
        return model

    @property
    def weights_(self) -> Array:
        """W, of shape (D, n_outputs): a copy of the weights at this moment."""
        solver = self._fitted("weights_")
        with self._guard:
            return solver.weights[:, : self.n_outputs_].copy()

    @property
    def ridge_(self) -> float:
        """The ridge in use: the one given, or the choice of ``"auto"`` at this moment."""
        return self._fitted("ridge_").ridge

    @property
    def prequential_error_(self) -> float:
        """Squared error before learning over the targets' variance; of all calls but the first."""
        self._fitted("prequential_error_")
        return self._prequential.nmse

    @property
    def prequential_(self) -> Curve:
        """The same over the life of the model: ``n_samples``, ``mse`` and ``nmse`` at each point.

        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> model = FTLRegressor()
        >>> for start in range(0, 500, 50):
        ...     _ = model.partial_fit(X[start:start + 50], np.sin(X[start:start + 50]))
        >>> curve = model.prequential_
        >>> bool(curve.nmse[-1] < curve.nmse[0]), curve.mse.shape
        (True, (9, 2))
        """
        self._fitted("prequential_")
        return self._prequential.curve()

    @property
    def regret_(self) -> Array:
        """What it has cost not to know the future, per output.

        The sum of squared errors of all predictions before learning (of zero, in the first call),
        less that of the present weights on the same rows. Weighted, and discounted, like
        these. Rows that were unlearned keep what they have cost.
        """
        solver = self._fitted("regret_")
        with self._guard:
            hindsight = solver.memory.squared_errors(solver.weights)[: self.n_outputs_]
            return np.asarray((self._prequential.loss - hindsight) / self._weight)

    def _fitted(self, name: str) -> Solver:
        if not hasattr(self, "_solver"):
            raise AttributeError(f"There is {name} only after fit or partial_fit.")
        return self._solver

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        with self._guard:
            if reset:
                check_parameters(self)
            n_outputs = None if reset else self.n_outputs_
            inputs = check_inputs(self, X, reset=reset)
            targets = check_targets(y, len(inputs), n_outputs)
            weights = check_weights(sample_weight, len(inputs))
            if sample_weight is not None and not weights.all():
                counted = weights > 0
                inputs, targets, weights = inputs[counted], targets[counted], weights[counted]
            if reset:
                learning.start(self, inputs, targets, weights)
                remember_inputs(self, X)
            else:
                learning.learn(self, inputs, targets, weights)
        return self

    def _shaped(self, padded_rows: Array) -> Array:
        """Rows without their padding, in the shape that targets were given in."""
        rows = padded_rows[:, : self.n_outputs_]
        return rows[:, 0].copy() if self._single else rows.copy()

    def _deviations(self, X: Array) -> Array:
        if self._solver.memory.total == 0.0:  # all was unlearned
            return self._shaped(np.full((len(X), self.n_outputs_), np.inf))
        if self._posterior is None:
            self._posterior = new_posterior(self._solver, self._weight, self.discount)
        step = learning.rows_at_once(self)
        parts = [
            self._posterior.variance(self.encoder_.encode(X[start : start + step]))
            for start in range(0, len(X), step)
        ]
        return self._shaped(np.sqrt(np.concatenate(parts)))

    @property
    def _guard(self) -> RLock:
        """One thread at a time: predictions never see a half-made update."""
        lock: RLock = self.__dict__.setdefault("_lock", RLock())
        return lock

    def __getstate__(self) -> dict[str, Any]:
        with self._guard:
            state: dict[str, Any] = super().__getstate__().copy()
        for derived in ("_lock", "_posterior"):
            state.pop(derived, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_solver"):
            self._posterior = None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solver")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        return tags
