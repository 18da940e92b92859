"""Inputs to features, and features times weights: section 3.2 of the paper."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from losse.jax.model import Grids, Model, varying

IN_BOUNDS = "promise_in_bounds"
"""Cells are valid by construction, so XLA need not check them when they are looked up."""
UNROLLED = 5
"""Grids that one turn of the loop over grids takes; on a CPU, one alone is half as fast."""


@jax.jit
def encode(model: Model, x: npt.ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Active features of inputs (..., n_features): their indices and values, (..., n_active).

    They are those of `losse.LosseEncoder`, in the same order.

    Examples
    --------
    >>> from losse.jax import init
    >>> indices, values = encode(init(jax.random.key(0), 3, 1, n_grids=5), jnp.zeros((10, 3)))
    >>> indices.shape, float(values[0].sum())  # 5 grids of 4 corners; in each the values sum to 1
    ((10, 20), 5.0)
    """
    rows = model.inputs(x)
    flat = features(model.grids, rows.reshape(-1, model.n_features))
    indices, values = (part.reshape(*rows.shape[:-1], -1) for part in flat)
    return indices, values


@jax.jit
def predict(model: Model, x: npt.ArrayLike) -> jax.Array:
    """Predicted targets of inputs (..., n_features).

    The result is (..., n_outputs), or (...) if targets are numbers. It is continuous in ``x`` and
    linear in ``model.weights``, and can be differentiated by both.

    Examples
    --------
    >>> from losse.jax import init, update
    >>> model = init(jax.random.key(0), 1, None, n_grids=10, ridge=1e-3)
    >>> X = jnp.linspace(-3, 3, 200)[:, None]
    >>> model = update(model, X, jnp.sin(X[:, 0]))
    >>> predict(model, X[:5]).shape
    (5,)
    >>> slope = jax.grad(lambda x: predict(model, x))(jnp.zeros(1))
    >>> bool(abs(slope[0] - 1) < 0.2)  # that of the sine at 0
    True
    """
    rows = model.inputs(x)
    flat = times(model.grids, rows.reshape(-1, model.n_features), model.weights)
    return model.shaped(flat.reshape(*rows.shape[:-1], model.n_outputs))


def features(grids: Grids, X: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cells and values of the active features of inputs (n, n_features), (n, n_active) each."""
    Z = _scaled(grids, X)
    first, shares = _located(grids, Z)
    steps, corners = _corners(grids, shares)
    cells = (first[..., None] + steps).transpose(1, 0, 2).reshape(len(X), -1)
    values = jnp.stack(corners, axis=-1).transpose(1, 0, 2).reshape(len(X), -1)
    if not grids.linear:
        return cells, values
    terms = jnp.arange(grids.n_cells, grids.dimension, dtype=cells.dtype)
    terms = jnp.broadcast_to(terms, (len(X), len(terms)))
    return jnp.hstack([cells, terms]), jnp.hstack([values, _with_one(Z)])


def times(grids: Grids, X: jax.Array, W: jax.Array) -> jax.Array:
    """Phi(X) W: interpolation in each grid's table of weights, summed over grids.

    One grid after the other, so that no array is larger than the inputs' projection.
    """
    Z = _scaled(grids, X)

    def add_grid(out: jax.Array, grid: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        first, shares = grid
        for step, value in zip(*_corners(grids, shares), strict=True):
            out = out + value[:, None] * W.at[first + step].get(mode=IN_BOUNDS)
        return out, None

    start = jnp.zeros((len(X), W.shape[1]), W.dtype)
    if grids.linear:
        start = _with_one(Z) @ W[grids.n_cells :]
    located = _located(grids, Z)
    return jax.lax.scan(add_grid, varying(start, (located, W)), located, unroll=UNROLLED)[0]


def _scaled(grids: Grids, X: jax.Array) -> jax.Array:
    """Inputs as the projection sees them."""
    return jnp.clip((X - grids.shift) * grids.factor, -grids.limit, grids.limit)


def _located(grids: Grids, Z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Lowest corner around each row, (n_grids, n), and the place beyond it, with an axis more.

    A saturated axis falls into the end of the last bin, so it stays inside its own grid.
    """
    n_bins = grids.n_bins
    position = n_bins * jax.nn.sigmoid(jnp.einsum("nf,fga->agn", Z, grids.projection))
    low = jnp.clip(position.astype(jnp.int32), 0, n_bins - 1)  # also of NaN
    first = jnp.arange(grids.n_grids, dtype=jnp.int32)[:, None]
    for axis in range(grids.grid_dim):
        first = first * (n_bins + 1) + low[axis]
    return first, (position - low).transpose(1, 0, 2)


def _corners(grids: Grids, shares: jax.Array) -> tuple[npt.NDArray[np.int32], list[jax.Array]]:
    """Distance of each corner from the lowest one, and its weight in multilinear interpolation.

    ``shares`` are (..., grid_dim, n). Corners are numbered row by row, the first axis slowest.
    """
    steps, values = np.zeros(1, np.int32), [jnp.ones_like(shares[..., 0, :])]
    for axis in range(grids.grid_dim):
        share = shares[..., axis, :]
        steps = np.add.outer(steps * (grids.n_bins + 1), np.arange(2)).ravel().astype(np.int32)
        values = [value * part for value in values for part in (1 - share, share)]
    return steps, values


def _with_one(Z: jax.Array) -> jax.Array:
    """Rows with a one before them."""
    return jnp.hstack([jnp.ones_like(Z[:, :1]), Z])
