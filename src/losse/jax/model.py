"""`Model`: everything that the functional form knows, as one pytree, and how it begins."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from losse.checks import check_count, check_positive
from losse.scaling import LIMIT

SQUARE_LIMIT = 8192
"""Features up to which A is a full square; beyond, its lower triangle is packed."""
LARGEST_SQUARE = 46_340
"""Features up to which 32-bit numbers can address the entries of a square."""

Tree = TypeVar("Tree")
Rows = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""Active cells, their values, targets and weight of samples; with a first axis, of many."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["shift", "factor", "projection"],
    meta_fields=["n_bins", "linear", "limit"],
)
@dataclass(frozen=True)
class Grids:
    """The encoder, the same as `losse.LosseEncoder`.

    Attributes
    ----------
    shift, factor
        An input becomes (x - shift) * factor, clipped to [-limit, limit].
    projection
        Directions, of shape (n_features, n_grids, grid_dim).
    n_bins
        Bins along each axis of a grid.
    linear
        Whether a one and the scaled inputs stand beside the grids.
    limit
        Bound of scaled inputs; infinity for inputs that are not scaled.
    """

    shift: jax.Array
    factor: jax.Array
    projection: jax.Array
    n_bins: int
    linear: bool
    limit: float

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return int(self.projection.shape[0])

    @property
    def n_grids(self) -> int:
        """Number of grids, kappa."""
        return int(self.projection.shape[1])

    @property
    def grid_dim(self) -> int:
        """Axes of a grid, rho."""
        return int(self.projection.shape[2])

    @property
    def cells_per_grid(self) -> int:
        """Edges of a grid: (n_bins + 1) ** grid_dim."""
        return int((self.n_bins + 1) ** self.grid_dim)

    @property
    def n_cells(self) -> int:
        """Features of all grids."""
        return self.n_grids * self.cells_per_grid

    @property
    def dimension(self) -> int:
        """Number of features, D in the paper."""
        return self.n_cells + (self.n_features + 1 if self.linear else 0)

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """Shape of A: a square, or the packed blocks of all pairs of grids."""
        if self.dimension <= SQUARE_LIMIT or self.linear:
            return self.dimension, self.dimension
        n, size = self.n_grids, self.cells_per_grid
        return n * (n + 1) // 2, size, size


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["A", "B", "squares", "total", "n_samples"],
    meta_fields=[],
)
@dataclass(frozen=True)
class Memory:
    """Sums over all samples, each with its weight w: what was learned apart adds up.

    Attributes
    ----------
    A
        Sum of w phi phi^T, (D, D) or packed.
    B
        Sum of w phi y^T, (D, n_outputs).
    squares
        Sum of w y^2, (n_outputs,).
    total, n_samples
        Sum of w, and the number of samples.
    """

    A: jax.Array
    B: jax.Array
    squares: jax.Array
    total: jax.Array
    n_samples: jax.Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["grids", "memory", "weights", "ridge"],
    meta_fields=["single"],
)
@dataclass(frozen=True)
class Model:
    """A model: a pytree that `init` or `from_regressor` makes, and never changes.

    Attributes
    ----------
    grids
        The encoder.
    memory
        The sums A and B.
    weights
        W, (D, n_outputs).
    ridge
        epsilon, as a scalar array.
    single
        Whether a target is a number instead of a vector.
    """

    grids: Grids
    memory: Memory
    weights: jax.Array
    ridge: jax.Array
    single: bool

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.grids.n_features

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return int(self.weights.shape[1])

    @property
    def dtype(self) -> Any:
        """Precision of all arrays."""
        return self.weights.dtype

    def replace(self, **parts: Any) -> Model:
        """The same model with other parts.

        >>> model = init(jax.random.key(0), 2, 1)
        >>> float(model.replace(ridge=jnp.float32(0.5)).ridge)
        0.5
        """
        return dataclasses.replace(self, **parts)

    def inputs(self, x: npt.ArrayLike) -> jax.Array:
        """Inputs (..., n_features) in the model's precision; raises if they are others."""
        rows = jnp.asarray(x, self.dtype)
        if rows.ndim == 0 or rows.shape[-1] != self.n_features:
            raise ValueError(
                f"x has shape {rows.shape}, but the model has {self.n_features} inputs: pass "
                f"({self.n_features},) for one row or (n, {self.n_features}) for a batch."
            )
        return rows

    def shaped(self, rows: jax.Array) -> jax.Array:
        """Targets (..., n_outputs) in the shape in which they are learned."""
        return rows[..., 0] if self.single else rows


def init(
    key: jax.Array,
    n_features: int,
    n_outputs: int | None,
    *,
    n_grids: int = 30,
    n_bins: int = 10,
    grid_dim: int = 2,
    linear: bool = False,
    scaling: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ridge: float | jax.Array = 1e-5,
    dtype: npt.DTypeLike | None = None,
) -> Model:
    """Make a model that has learned nothing.

    Parameters
    ----------
    key
        Random key of the projection.
    n_features
        Number of inputs.
    n_outputs
        Number of targets; None if a target is a single number.
    n_grids, n_bins, grid_dim, linear
        As in `losse.LosseEncoder`: kappa, lambda and rho of the paper, and whether a one and the
        inputs stand beside the grids.
    scaling
        Bounds (low, high) that are mapped to [-3, 3], numbers or one per input; None for inputs
        that are within about [-3, 3] already.
    ridge
        epsilon, above zero: after n samples the penalty is epsilon * n * ||W||^2. It may be traced,
        as may be the key and the scaling, so that one can `vmap` over many.
    dtype
        ``"float32"``, or ``"float64"`` if ``jax_enable_x64`` is on; by default JAX's own.

    Examples
    --------
    >>> model = init(jax.random.key(0), n_features=3, n_outputs=2, n_grids=5)
    >>> model.weights.shape  # 5 grids of 11 x 11 cells
    (605, 2)
    """
    for name, value in (
        ("n_features", n_features),
        ("n_outputs", 1 if n_outputs is None else n_outputs),
        ("n_grids", n_grids),
        ("n_bins", n_bins),
        ("grid_dim", grid_dim),
    ):
        check_count(name, value)
    if not is_traced(ridge):
        check_positive("ridge", float(ridge))
    real = precision(dtype)
    shift, factor, limit = jnp.zeros(n_features, real), jnp.ones(n_features, real), math.inf
    if scaling is not None:
        (low, high), limit = _bounds(scaling, n_features, real), LIMIT
        shift, factor = (low + high) / 2, 2 * limit / (high - low)
    shape = (n_features, n_grids, grid_dim)
    directions = jax.random.truncated_normal(key, -2, 2, shape, real) / math.sqrt(n_features)
    return empty(Grids(shift, factor, directions, n_bins, linear, limit), n_outputs, ridge)


def empty(grids: Grids, n_outputs: int | None, ridge: float | jax.Array) -> Model:
    """Make a model of an encoder that has learned nothing."""
    D, S, real = grids.dimension, n_outputs or 1, grids.projection.dtype
    if grids.linear and D > LARGEST_SQUARE:
        raise ValueError(
            f"linear=True with {D:,} features is too large: the terms beside the grids are kept in "
            f"a square of at most {LARGEST_SQUARE:,} features. Use linear=False or fewer grids."
        )
    memory = Memory(
        A=jnp.zeros(grids.memory_shape, real),
        B=jnp.zeros((D, S), real),
        squares=jnp.zeros(S, real),
        total=jnp.zeros((), real),
        n_samples=jnp.zeros((), jnp.int32),
    )
    weights = jnp.zeros((D, S), real)
    return Model(grids, memory, weights, jnp.asarray(ridge, real), n_outputs is None)


def precision(dtype: npt.DTypeLike | None) -> Any:
    """The precision that was asked for; raises if JAX would silently use another."""
    asked = np.dtype(jnp.result_type(float) if dtype is None else dtype)
    if asked not in (np.float32, np.float64):
        raise ValueError(f'dtype={dtype!r} must be "float32" or "float64".')
    if jax.dtypes.canonicalize_dtype(asked) != asked:
        raise ValueError(
            f"dtype={dtype!r} needs 64 bits, which JAX does not use by default: call "
            'jax.config.update("jax_enable_x64", True) first, or use dtype="float32".'
        )
    return asked


def varying(tree: Tree, like: Any) -> Tree:
    """The same arrays, typed as different on every device where those of ``like`` are.

    Inside `jax.shard_map` a loop that takes in rows of a shard must begin with such arrays.
    """
    axes = frozenset().union(*map(axes_of, jax.tree.leaves(like)))

    def cast(leaf: jax.Array) -> jax.Array:
        missing = tuple(axes - axes_of(leaf))
        return jax.lax.pcast(leaf, missing, to="varying") if missing else leaf

    return jax.tree.map(cast, tree)


def axes_of(leaf: jax.Array) -> frozenset[str]:
    """Axes of a mesh along which an array differs, as its type says in versions that say it."""
    kind = jax.typeof(leaf) if hasattr(jax, "typeof") else None
    varying = getattr(getattr(kind, "manual_axis_type", None), "varying", None)
    return getattr(kind, "vma", frozenset()) if varying is None else varying


def is_traced(value: Any) -> bool:
    """Whether a value, or a leaf of a pytree, is known only when a compiled program runs."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def _bounds(scaling: Any, n_features: int, real: Any) -> tuple[jax.Array, jax.Array]:
    """Lower and upper bounds of each input."""
    try:
        low, high = (jnp.broadcast_to(jnp.asarray(b, real), (n_features,)) for b in scaling)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"scaling={scaling!r} does not fit {n_features} inputs: give (low, high), two numbers "
            f"or two arrays of length {n_features}, or None."
        ) from error
    if not is_traced((low, high)) and not (jnp.isfinite(high - low).all() and (low < high).all()):
        raise ValueError(
            f"scaling={scaling!r}: every low bound must be finite and below its high bound."
        )
    return low, high
