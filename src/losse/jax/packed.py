"""Memory A of a large model: its lower triangle, as one block (C, C) per pair of grids.

Half the size of the square. Grid g with grid h <= g is block g (g + 1) / 2 + h, as in
`losse.ftl.memories`. A sample has the same number of active cells in every grid.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from losse.jax.encoding import IN_BOUNDS

Grid = jax.Array | npt.NDArray[np.int64]


def add(A: jax.Array, cells: jax.Array, phi: jax.Array, weight: jax.Array) -> jax.Array:
    """A + weight phi phi^T, for the active cells of one sample."""
    own = _by_grid(A, cells)
    values = phi.reshape(own.shape)
    g, h = np.tril_indices(len(own))  # row by row, so pair k is block k
    entries = np.arange(len(A))[:, None, None], own[g][:, :, None], own[h][:, None, :]
    products = weight * values[g][:, :, None] * values[h][:, None, :]
    return A.at[entries].add(products, mode=IN_BOUNDS, unique_indices=True)


def block(A: jax.Array, cells: jax.Array) -> jax.Array:
    """A_ss for the cells s."""
    own = _by_grid(A, cells)
    g, h = np.indices((len(own), len(own)))
    below = (g >= h)[:, None, :, None]
    rows, columns = own[:, :, None, None], own[None, None]
    pairs = _pair(g, h)[:, None, :, None]
    entries = pairs, jnp.where(below, rows, columns), jnp.where(below, columns, rows)
    return A.at[entries].get(mode=IN_BOUNDS).reshape(len(cells), len(cells))


def rows_times(A: jax.Array, cells: jax.Array, W: jax.Array) -> jax.Array:
    """A_s W, with A_s the rows of the cells s: grid after grid, each with all others."""
    own = _by_grid(A, cells)
    h = np.arange(len(own))

    def of_grid(grid: tuple[jax.Array, jax.Array]) -> jax.Array:
        g, corners = grid
        entries = _pair(g, h), corners[:, None]
        lower = A.at[entries].get(mode=IN_BOUNDS)
        upper = A.at[entries[0], :, entries[1]].get(mode=IN_BOUNDS)
        rows = jnp.where((h <= g)[:, None], lower, upper)
        return rows.reshape(len(corners), -1) @ W

    return jax.lax.map(of_grid, (jnp.asarray(h), own)).reshape(len(cells), -1)


def _by_grid(A: jax.Array, cells: jax.Array) -> jax.Array:
    """Active cells of each grid, (n_grids, corners), counted within the grid."""
    n_grids = math.isqrt(2 * len(A))
    return cells.reshape(n_grids, -1) % A.shape[1]


def _pair(g: Grid, h: Grid) -> jax.Array:
    """Number of the block of two grids."""
    large, small = jnp.maximum(g, h), jnp.minimum(g, h)
    return large * (large + 1) // 2 + small
