"""Memory A of a model of moderate size: a full square (D, D), in which rows are contiguous."""

from __future__ import annotations

import jax

from losse.jax.encoding import IN_BOUNDS


def add(A: jax.Array, cells: jax.Array, phi: jax.Array, weight: jax.Array) -> jax.Array:
    """A + weight phi phi^T, for the active cells of one sample."""
    entries = cells[:, None] * len(A) + cells
    products = (weight * phi)[:, None] * phi
    flat = A.ravel().at[entries].add(products, mode=IN_BOUNDS, unique_indices=True)
    return flat.reshape(A.shape)


def block(A: jax.Array, cells: jax.Array) -> jax.Array:
    """A_ss for the cells s."""
    return A.at[cells].get(mode=IN_BOUNDS).at[:, cells].get(mode=IN_BOUNDS)


def rows_times(A: jax.Array, cells: jax.Array, W: jax.Array) -> jax.Array:
    """A_s W, with A_s the rows of the cells s."""
    return A.at[cells].get(mode=IN_BOUNDS) @ W
