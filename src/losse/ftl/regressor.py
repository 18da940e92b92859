"""`FTLRegressor`: the scikit-learn face of follow-the-leader regression."""

from copy import deepcopy
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from losse._kernels.simd import aligned, padded
from losse.checks import (
    check_inputs,
    check_positive,
    check_targets,
    check_weights,
    remember_inputs,
)
from losse.encoders import Encoder, LosseEncoder
from losse.encoders.features import Array
from losse.ftl.capacity import require_memory
from losse.ftl.dense import DenseSolver
from losse.ftl.exact import ExactSolver
from losse.ftl.memory import is_packed, memory_bytes, new_memory
from losse.ftl.solver import Solver
from losse.ftl.sparse import SparseSolver

SOLVERS = ("auto", "sparse", "dense", "exact")
AUTO_ITERATIONS = 2
"""Conjugate gradients per batch that ``solver="auto"`` allows a large model."""

# Active features encoded at once, and the weight at which discounted sums are scaled back.
_CHUNK_ENTRIES = 1 << 22
_LARGEST_WEIGHT = 1e15


class FTLRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression on sparse features that follows the leader (section 3 of the paper).

    After n samples the weights minimise, or approach the minimum of,

    .. math:: \sum_i \|y_i - W^T \phi(x_i)\|^2 + \varepsilon n \|W\|^2,

    the fit of *all* data so far, in one pass and without keeping them: two sums,
    :math:`A = \sum \phi \phi^T` and :math:`B = \sum \phi y^T`, hold everything that matters.

    Parameters
    ----------
    encoder
        What makes the features; None for ``LosseEncoder()``. One that is fitted already is copied
        as it is; otherwise a clone is fitted on the first data and stays frozen.
    solver
        ``"sparse"``: Algorithm 2, row by row, only the active weights. ``"dense"``: Algorithm 1,
        all weights by one factorisation per call. ``"exact"``: within 1 % of the smallest possible
        objective after every call, without a factorisation each time. ``"auto"``: the same, except
        that models of more than 8192 features with more than 1500 samples approach the leader by
        two conjugate-gradient iterations per call. With a dense encoder all features are
        active, so ``"sparse"`` is the same as ``"dense"``.
    ridge
        epsilon, above zero. What is below 1e-10, out of reach of double precision, counts as
        1e-10 in ``"exact"`` and ``"auto"``.
    discount
        Below one, a sample's weight shrinks by this factor with each sample that follows, for
        dynamics that change.
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

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        solver: str = "auto",
        ridge: float = 1e-5,
        discount: float = 1.0,
        dtype: str = "float64",
    ) -> None:
        self.encoder = encoder
        self.solver = solver
        self.ridge = ridge
        self.discount = discount
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

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predicted targets, one row (or, for 1-d targets, one number) per row of ``X``."""
        if not hasattr(self, "_solver"):
            check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        W = self._solver.weights
        out = aligned((len(X), W.shape[1]))
        self.encoder_.times(X, W, out)
        predictions = out[:, : self.n_outputs_]
        return predictions[:, 0].copy() if self._single else predictions.copy()

    @property
    def weights_(self) -> Array:
        """W, of shape (D, n_outputs): a copy of the weights at this moment."""
        if not hasattr(self, "_solver"):
            raise AttributeError("weights_ exist only after fit or partial_fit.")
        return self._solver.weights[:, : self.n_outputs_].copy()

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        if reset:
            self._check_parameters()
        n_outputs = None if reset else self.n_outputs_
        inputs = check_inputs(self, X, reset=reset)
        targets = check_targets(y, len(inputs), n_outputs)
        weights = check_weights(sample_weight, len(inputs))
        if sample_weight is not None and not weights.all():
            counted = weights > 0
            inputs, targets, weights = inputs[counted], targets[counted], weights[counted]
        if reset:
            self._start(inputs, targets, weights)
            remember_inputs(self, X)
        step = self._rows_at_once()
        for start in range(0, len(inputs), step):
            rows = slice(start, start + step)
            some = targets[rows]
            filled = aligned((len(some), padded(self.n_outputs_)))
            filled[:, : self.n_outputs_] = some.reshape(len(some), -1)
            features = self.encoder_.encode(inputs[rows])
            self._solver.learn(features, filled, self._discounted(weights[rows]))
        self.n_samples_seen_ += len(inputs)
        return self

    def _rows_at_once(self) -> int:
        """Rows whose features fit in little memory, and whose discount in the range of doubles."""
        rows = _CHUNK_ENTRIES // self.encoder_.n_active
        if self.discount < 1:
            rows = min(rows, int(np.log(_LARGEST_WEIGHT) / -np.log(self.discount)))
        return max(1, rows)

    def _start(self, X: Array, targets: Array, weights: Array) -> None:
        """Fit the encoder, and make empty memories and a solver."""
        encoder = self._fitted_encoder(X, weights)
        n_outputs = 1 if targets.ndim == 1 else targets.shape[1]
        self._solver = self._new_solver(encoder, n_outputs)
        self.encoder_ = encoder
        self.n_outputs_ = n_outputs
        self.n_samples_seen_ = 0
        self._single = targets.ndim == 1
        self._weight = 1.0

    def _fitted_encoder(self, X: Array, weights: Array) -> Encoder:
        encoder = LosseEncoder() if self.encoder is None else self.encoder
        if not hasattr(encoder, "projection_"):
            return clone(encoder).fit(X, sample_weight=weights)
        if encoder.n_features_in_ != X.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features, but encoder was fitted on "
                f"{encoder.n_features_in_}; pass an encoder that is not fitted, or one for this X."
            )
        own = deepcopy(encoder)
        own.projection_ = encoder.projection_  # a copy made by the setter is aligned
        return own

    def _new_solver(self, encoder: Encoder, n_outputs: int) -> Solver:
        dense_features = encoder.n_active == encoder.dimension
        kind = "dense" if self.solver == "sparse" and dense_features else self.solver
        needed = memory_bytes(encoder, self.dtype)
        D = encoder.dimension
        if kind == "dense" or (kind in ("exact", "auto") and not is_packed(encoder)):
            needed += D**2 * 8.0  # a factor or an inverse beside A
        require_memory(
            needed,
            f"A model of {D:,} features with solver={self.solver!r} and dtype={self.dtype!r}",
            "Lower n_grids, n_bins or grid_dim (n_components for dense encoders), "
            'or use dtype="float32".',
        )
        memory = new_memory(encoder, n_outputs, self.dtype)
        if kind == "dense":
            return DenseSolver(memory, self.ridge)
        if kind == "sparse":
            return SparseSolver(memory, self.ridge, encoder.n_active)
        return ExactSolver(memory, self.ridge, AUTO_ITERATIONS if kind == "auto" else None)

    def _discounted(self, weights: Array) -> Array:
        """Weights that grow from row to row, which is the same as letting the past shrink."""
        if self.discount == 1.0:
            return weights
        if self._weight > _LARGEST_WEIGHT:
            self._solver.rescale(1.0 / self._weight)
            self._weight = 1.0
        growth = self._weight * self.discount ** -np.arange(1.0, len(weights) + 1.0)
        self._weight = float(growth[-1])
        return weights * growth

    def _check_parameters(self) -> None:
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise TypeError(
                f"encoder={self.encoder!r} is not an encoder: use one of losse's, such as "
                "LosseEncoder(), or None."
            )
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r} is not known: use one of {SOLVERS}.")
        check_positive("ridge", self.ridge)
        if not isinstance(self.discount, Real) or not 0 < self.discount <= 1:
            raise ValueError(
                f"discount={self.discount!r} must be above 0 and at most 1 (1: no discount)."
            )
        if self.dtype not in ("float32", "float64", np.float32, np.float64):
            raise ValueError(f'dtype={self.dtype!r} must be "float32" or "float64".')

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solver")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        return tags
