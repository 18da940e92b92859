"""The paper's own update as a yardstick: Algorithm 2 with dense memories, in JAX.

This is the yardstick of the benchmark: a functional implementation whose work per row is that of
the paper's listing, step by step and array by array.

* Memories are dense: ``gram`` (A) is one flat vector of D * D numbers, ``moment`` (B) and
  ``weights`` (W) are (D, S), with D = n_grids * (n_bins + 2) ** grid_dim.  Cells are numbered with
  (n_bins + 1) ** grid_dim per grid, so the tail of each array is allocated but never visited.
* One row per update: scatter-add of the K x K outer product, gather of A_ss, product of the K
  whole rows A_s with W, and a general ``jnp.linalg.solve`` of the block divided by the count, with
  the ridge added after that division.  K = n_grids * 2 ** grid_dim.
* Prediction gathers the K weight rows of every sample of the batch and sums them, weighted.

Two departures, neither of which changes the cost: the projection is given (so that two models can
share it), and a saturated input stays in the last bin of its own grid instead of spilling over.

Order of cells.  The listing keeps the projection as (n_features, grid_dim * n_grids), axis index
slowest: column ``axis * n_grids + grid``.  ``LosseEncoder.projection_`` is
(n_features, n_grids, grid_dim), so ``listing = projection_.transpose(0, 2, 1).reshape(n, -1)``,
which is what ``start`` stores.  In both, the cell of grid ``g`` with edge numbers ``e`` is
``g * (n_bins + 1) ** grid_dim`` plus the row-major number of ``e`` (first axis slowest).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray


class Shape(NamedTuple):
    """The sizes and the ridge: everything that is fixed when the functions are compiled."""

    n_grids: int
    n_bins: int
    grid_dim: int
    ridge: float

    @property
    def n_cells(self) -> int:
        """Rows of the memories, D."""
        return self.n_grids * (self.n_bins + 2) ** self.grid_dim


class Memory(NamedTuple):
    """The state that one update turns into the next."""

    seen: jax.Array
    projection: jax.Array
    gram: jax.Array
    moment: jax.Array
    weights: jax.Array


def start(shape: Shape, projection: ArrayLike, n_outputs: int, dtype: str = "float32") -> Memory:
    """Empty memories around a projection of shape (n_features, n_grids, grid_dim)."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError("dtype='float64' needs jax_enable_x64, which is off")
    axes = np.asarray(projection)
    if axes.ndim != 3 or axes.shape[1:] != (shape.n_grids, shape.grid_dim):
        raise ValueError(
            f"projection has shape {axes.shape}, expected "
            f"(n_features, {shape.n_grids}, {shape.grid_dim})"
        )
    d = shape.n_cells
    return Memory(
        seen=jnp.zeros((), jnp.int32),
        projection=jnp.asarray(axes.transpose(0, 2, 1).reshape(len(axes), -1), dtype),
        gram=jnp.zeros(d * d, dtype),
        moment=jnp.zeros((d, n_outputs), dtype),
        weights=jnp.zeros((d, n_outputs), dtype),
    )


def encode(shape: Shape, projection: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Active cells and their weights, both (n, K): soft binning of each squashed axis."""
    edges = shape.n_bins + 1
    position = shape.n_bins * jax.nn.sigmoid(x @ projection)
    position = position.reshape(-1, shape.grid_dim, shape.n_grids)
    below = jnp.minimum(jnp.floor(position), shape.n_bins - 1)
    share = position - below
    edge = below.astype(jnp.int32)
    neighbours = jnp.stack([edge, edge + 1], axis=-1)  # (n, axis, grid, 2)
    factors = jnp.stack([1 - share, share], axis=-1)

    # Row-major outer product over the axes: one dimension of length 2 for each.
    cells = jnp.arange(shape.n_grids)
    values = jnp.ones((), factors.dtype)
    for axis in range(shape.grid_dim):
        inner = (slice(None), axis, slice(None), *axis * (None,))
        cells = edges * cells[..., None] + neighbours[inner]
        values = values[..., None] * factors[inner]
    return cells.reshape(len(x), -1), values.reshape(len(x), -1)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def learn_row(shape: Shape, memory: Memory, x: jax.Array, y: jax.Array) -> Memory:
    """Algorithm 2 for one row: x is (1, n_features), y is (1, n_outputs)."""
    d = shape.n_cells
    cells, values = (part[0] for part in encode(shape, memory.projection, x))
    pairs = d * cells[:, None] + cells[None, :]

    seen = memory.seen + 1
    gram = memory.gram.at[pairs.ravel()].add(jnp.outer(values, values).ravel())
    moment = memory.moment.at[cells].add(jnp.outer(values, y[0]))

    block = gram[pairs]
    rows = gram.reshape(d, d)[cells]
    outside = rows @ memory.weights - block @ memory.weights[cells]  # A_s,s' W_s'
    system = block / seen + shape.ridge * jnp.eye(len(cells), dtype=block.dtype)
    solved = jnp.linalg.solve(system, (moment[cells] - outside) / seen)
    return memory._replace(
        seen=seen, gram=gram, moment=moment, weights=memory.weights.at[cells].set(solved)
    )


@partial(jax.jit, static_argnums=0)
def predict(shape: Shape, projection: jax.Array, weights: jax.Array, x: jax.Array) -> jax.Array:
    """W^T phi(x) for a batch of rows."""
    cells, values = encode(shape, projection, x)
    return (weights[cells] * values[:, :, None]).sum(axis=1)


class Yardstick:
    """The functions above with the state kept between calls; NumPy arrays in and out."""

    def __init__(
        self,
        projection: ArrayLike,
        n_outputs: int,
        *,
        n_bins: int,
        ridge: float = 1e-5,
        dtype: str = "float32",
    ) -> None:
        axes = np.asarray(projection)
        self.shape = Shape(axes.shape[1], n_bins, axes.shape[2], ridge)
        self.memory = start(self.shape, axes, n_outputs, dtype)

    def learn(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        """Take the rows in one by one and wait until the last weights are there."""
        for i in range(len(x)):
            self.memory = learn_row(self.shape, self.memory, x[i : i + 1], y[i : i + 1])
            self.memory.weights.block_until_ready()

    def predict(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Predictions of shape (n, n_outputs)."""
        return np.asarray(predict(self.shape, self.memory.projection, self.memory.weights, x))
