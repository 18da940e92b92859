"""`Encoder`, the base of all encoders: scikit-learn face, scaling of inputs, random projection."""

import math
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from losse._kernels.simd import aligned, padded
from losse.checks import check_count, check_weights
from losse.encoders.features import Features
from losse.scaling import LIMIT, Scaling, bounded, standard
from losse.storage.state import State, StateReader
from losse.threads import one_thread
from losse.typing import Array
from losse.work import Work, finished

# Below this many rows a mean and a standard deviation say little.
_FEW_ROWS = 10
# Rows whose features stay in cache between being made and being used.
_ROWS_AT_ONCE = 512

ScalingChoice = str | tuple[Any, Any] | None
"""None, "standard", or bounds (low, high)."""


class Encoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the encoders: ``fit`` freezes the scaling and draws the projection.

    Subclasses say what the projection looks like (`_draw`) and what becomes of it (`encode`).
    """

    scaling: ScalingChoice
    seed: int
    n_features_in_: int
    warm_up = 0
    """Rows with targets from which the features are best learned; 0 where targets do not matter."""

    def fit(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn the scaling from ``X`` and draw the projection; both stay as they are from here."""
        self.check_parameters()
        rows: Array = validate_data(self, X, dtype=np.float64, order="C")
        weights = check_weights(sample_weight, len(rows))
        self.warn_of_few(rows)
        self.freeze(rows, self._check_targets(y, len(rows)), weights)
        return self

    def freeze(self, X: Array, Y: Array | None, weights: Array) -> None:
        """What `fit` does, for checked rows, targets (where they matter) and weights."""
        with one_thread():
            finished(self.freezing(X, Y, weights))

    def freezing(self, X: Array, Y: Array | None, weights: Array) -> Work[None]:
        """What `freeze` does, as work in units."""
        self.n_features_in_ = X.shape[1]
        self._scaling, self._limit = learn_scaling(self.scaling, X, weights)
        self.projection_ = self._draw(np.random.default_rng(self.seed), X.shape[1])
        yield float(X.size + self.projection_.size)

    @property
    def fitted(self) -> bool:
        """Whether `fit` or `freeze` has been called."""
        return hasattr(self, "_padded")

    def early(self) -> "Encoder":
        """A new encoder that does the work of this one while there are few rows to learn from."""
        return clone(self)

    def warn_of_few(self, X: Array) -> None:
        """Warn if the scaling is to be frozen on next to nothing."""
        if self.scaling == "standard" and len(X) < _FEW_ROWS:
            warnings.warn(
                f'scaling="standard" is frozen on {len(X)} row(s), too few to know the spread of '
                "the inputs: fit the encoder on more rows first, or give bounds (low, high).",
                stacklevel=3,
            )

    def transform(self, X: npt.ArrayLike) -> Any:
        """The features of ``X``, one row per input."""
        check_is_fitted(self)
        rows: Array = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return self.encode(rows).matrix()

    @abstractmethod
    def encode(self, X: Array) -> Features:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""

    def no_features(self) -> Features:
        """Features of the kind that this encoder makes, without a row."""
        return self.encode(np.empty((0, self.n_features_in_)))

    def times(self, X: Array, W: Array, out: Array, columns: int | None = None) -> None:
        """out = Phi(X) W for checked rows; W and out have rows padded to whole cache lines.

        The first ``columns`` are needed, or all; others of ``out`` may be left as they are.
        """
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self.encode(X[rows]).times(W, out[rows])

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of features, D in the paper."""

    @property
    @abstractmethod
    def n_active(self) -> int:
        """At most this many features of a row are not zero."""

    @property
    @abstractmethod
    def _projection_shape(self) -> tuple[int, ...]:
        """Shape of the directions for one input feature."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, n_features: int) -> Array: ...

    def _check_targets(self, y: Any, n_rows: int) -> Array | None:
        """Targets as `freeze` needs them: not at all, unless a subclass says otherwise."""
        return None

    def check_parameters(self) -> None:
        check_count("seed", self.seed, at_least=0)
        if not (self.scaling is None or self.scaling == "standard" or _is_pair(self.scaling)):
            raise ValueError(
                f"scaling={self.scaling!r} is not known: use None (inputs within about [-3, 3]), "
                '"standard" or a pair (low, high) of bounds.'
            )

    @property
    def _n_features_out(self) -> int:
        return self.dimension

    @property
    def projection_(self) -> Array:
        """The random directions. Another array of the same shape may be assigned."""
        if not hasattr(self, "_padded"):
            raise AttributeError("projection_ exists only after fit.")
        axes = math.prod(self._projection_shape)
        rows = self._padded[-self._width :, :axes]
        return rows.reshape(-1, *self._projection_shape)

    @projection_.setter
    def projection_(self, value: npt.ArrayLike) -> None:
        projection = np.asarray(value, dtype=np.float64)
        expected = (self._width, *self._projection_shape)
        if projection.shape != expected:
            raise ValueError(f"projection_ has shape {projection.shape}, expected {expected}.")
        axes = math.prod(self._projection_shape)
        self._padded = self._pad(projection.reshape(self._width, axes))

    @property
    def _width(self) -> int:
        """Of what is projected: the inputs, unless a subclass makes more of them."""
        return self.n_features_in_

    def _pad(self, projection: Array) -> Array:
        """The projection with rows of whole cache lines, as the kernel reads it."""
        rows, axes = projection.shape
        filled = aligned((rows, padded(axes)))
        filled[:, :axes] = projection
        return filled

    def state(self) -> State:
        """What makes the features, for checkpoints and comparisons: nothing but arrays."""
        shift, factor = self._scaling
        return {"shift": shift, "scale": factor, "projection": self.projection_}

    def restore(self, saved: StateReader) -> None:
        """Become fitted by what `state` has returned."""
        self.n_features_in_ = saved.length("shift")
        if self.n_features_in_ == 0:
            saved.refuse("array shift is empty: a model has at least one input")
        shape: tuple[int, ...] = (self.n_features_in_,)
        self._scaling = Scaling(saved.array("shift", shape), saved.array("scale", shape))
        self._limit = np.inf if self.scaling is None else LIMIT
        shape = (self._width, *self._projection_shape)
        self.projection_ = saved.array("projection", shape)

    def same_features(self, other: "Encoder") -> bool:
        """Whether two fitted encoders make the same features of every input."""
        return self is other or (
            type(self) is type(other)
            and self.dimension == other.dimension
            and self._limit == other._limit
            and all(
                np.array_equal(part, other.state()[name]) for name, part in self.state().items()
            )
        )

    def add_inputs(
        self, projection: npt.ArrayLike, bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    ) -> Self:
        """Let a fitted encoder take more input features, behind those it has.

        ``projection`` holds their directions. ``bounds`` are the (low, high) that are mapped to
        [-3, 3], or None for an encoder with ``scaling=None``. Midway between its bounds (at zero
        without any) a new input adds nothing, so rows with this value are encoded as before.

        >>> from losse import LosseEncoder
        >>> encoder = LosseEncoder(n_grids=2, scaling=(-1, 1)).fit([[0.5]])
        >>> before = encoder.transform([[0.5]])
        >>> after = encoder.add_inputs(np.ones((1, 2, 2)), (0, 10)).transform([[0.5, 5.0]])
        >>> bool((before != after).nnz)
        False
        """
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_"):
            raise ValueError("The encoder was fitted on named columns: fit it on an array instead.")
        if (self.scaling is None) != (bounds is None):
            raise ValueError(
                f"bounds={bounds!r} do not suit scaling={self.scaling!r}: give (low, high), or "
                "None if the encoder does not scale its inputs."
            )
        rows = np.asarray(projection, dtype=np.float64)
        if rows.ndim == 0 or rows.shape[1:] != self._projection_shape:
            expected = ", ".join(map(str, ("n", *self._projection_shape)))
            raise ValueError(f"projection has shape {rows.shape}, expected ({expected}).")
        more, _ = learn_scaling(bounds, np.zeros((1, len(rows))))
        widened = np.concatenate([self.projection_, rows])
        pairs = zip(self._scaling, more, strict=True)
        self._scaling = Scaling(*(np.concatenate(pair) for pair in pairs))
        self.n_features_in_ = len(widened)
        self.projection_ = widened
        return self

    def outside(self, X: Array) -> npt.NDArray[np.int64]:
        """Number of rows in which each input is beyond the limit at which it is cut off."""
        return np.asarray((np.abs(self._scaling.apply(X, np.inf)) > self._limit).sum(axis=0))

    def _scaled(self, X: Array) -> Array:
        """Inputs as the projection sees them."""
        return self._scaling.apply(X, self._limit)

    @property
    def _input_map(self) -> tuple[Array, Array, float, Array]:
        """What a kernel needs to scale and project an input."""
        return *self._scaling, self._limit, self._padded


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Standard normal values cut off at two standard deviations, by inversion.

    >>> bool(np.abs(truncated_normal(np.random.default_rng(0), (1000,))).max() <= 2)
    True
    """
    values: Array = ndtri(rng.uniform(ndtr(-2.0), ndtr(2.0), size=shape))
    return values


def _is_pair(scaling: Any) -> bool:
    return isinstance(scaling, (tuple, list)) and len(scaling) == 2


def learn_scaling(
    choice: ScalingChoice, X: Array, weights: Array | None = None
) -> tuple[Scaling, float]:
    """Scaling of inputs that a choice asks for, and the limit to which they are clipped then."""
    n_features = X.shape[1]
    if choice is None:
        return Scaling(np.zeros(n_features), np.ones(n_features)), np.inf
    if isinstance(choice, str):
        return standard(X, weights), LIMIT
    try:
        low, high = (
            np.broadcast_to(np.asarray(bound, dtype=np.float64), (n_features,)) for bound in choice
        )
    except ValueError as error:
        raise ValueError(
            f"scaling={choice!r} does not fit {n_features} features: give two numbers, or two "
            f"arrays of length {n_features}."
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(
            f"scaling={choice!r}: every low bound must be finite and below its high bound."
        )
    return bounded(low, high), LIMIT
