"""Merging: memories are sums, so what models have learned apart adds up exactly."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from losse.jax.learning import leader
from losse.jax.model import Model, is_traced


def merge(model: Model, *others: Model) -> Model:
    """One model that has learned everything that these have.

    All must share one encoder: begin each from the same empty model. The weights become the
    leader; those of a large model, whose memory is packed, the mean of all models' weights, each
    counting by what it has learned, from where `update` goes on. The ridge is that of the first.

    Examples
    --------
    >>> from losse.jax import init, update
    >>> empty = init(jax.random.key(0), 1, 1, n_grids=5)
    >>> X = jnp.linspace(-3, 3, 100)[:, None]
    >>> parts = [update(empty, X[k::2], jnp.sin(X[k::2])) for k in (0, 1)]
    >>> int(merge(*parts).memory.n_samples)
    100
    """
    for other in others:
        _require_mergeable(model, other)
    models = (model, *others)
    memory = jax.tree.map(lambda *parts: sum(parts), *(one.memory for one in models))
    weighted = jax.tree.map(lambda *parts: sum(parts), *(_weighted(one) for one in models))
    return _merged(model.replace(memory=memory), weighted)


def merge_across(model: Model, axis_name: str) -> Model:
    """Merge the models of all members of a mapped axis, inside `vmap`, `pmap` or `shard_map`.

    Each member's memory must hold its own samples only: begin each from the same empty model, or
    what all have in common counts as many times as there are members.

    Examples
    --------
    >>> from losse.jax import accumulate, init
    >>> empty = init(jax.random.key(0), 1, 1, n_grids=5)
    >>> X = jnp.linspace(-3, 3, 100).reshape(4, 25, 1)
    >>> def learn(x):
    ...     return merge_across(accumulate(empty, x, jnp.sin(x)), "shards")
    >>> merged = jax.vmap(learn, axis_name="shards", out_axes=None)(X)
    >>> int(merged.memory.n_samples)
    100
    """
    memory, weighted = jax.lax.psum((model.memory, _weighted(model)), axis_name)  # type: ignore[no-untyped-call]
    return _merged(model.replace(memory=memory), weighted)


def _weighted(model: Model) -> jax.Array:
    """Weights times what they were learned from."""
    return model.memory.total * model.weights


def _merged(model: Model, weighted: jax.Array) -> Model:
    """The model with weights for its new memory; ``weighted`` is the sum of total times W."""
    if model.memory.A.ndim == 2:
        return leader(model)
    total = model.memory.total
    return model.replace(weights=weighted / jnp.where(total > 0, total, 1))


def _require_mergeable(model: Model, other: Model) -> None:
    """Raise if the sums of two models are over other features or outputs."""
    if not isinstance(other, Model):
        raise TypeError(f"other={other!r} is not a losse.jax.Model: only those can be merged.")
    if _sizes(model) != _sizes(other):
        raise ValueError(
            f"other is a model of {_sizes(other)}, but the first one of {_sizes(model)}: merge "
            "models that began as the same empty model."
        )
    parts = zip(jax.tree.leaves(model.grids), jax.tree.leaves(other.grids), strict=True)
    known = (pair for pair in parts if not is_traced(pair))
    if not all(a is b or np.array_equal(a, b) for a, b in known):
        raise ValueError(
            "other has another projection or scaling than the first model, so their features "
            "differ: merge models that began as the same empty model."
        )


def _sizes(model: Model) -> str:
    """Everything of a model that is no array, in words."""
    grids = model.grids
    scaled = "no scaling" if grids.limit == math.inf else "scaled inputs"
    outputs = None if model.single else model.n_outputs
    return (
        f"n_features={grids.n_features}, n_outputs={outputs}, n_grids={grids.n_grids}, "
        f"n_bins={grids.n_bins}, grid_dim={grids.grid_dim}, linear={grids.linear}, {scaled} and "
        f"dtype={model.dtype.name}"
    )
