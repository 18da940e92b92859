"""Learning: Algorithm 2 of the paper for rows as they come, and Algorithm 1 in two parts."""

from __future__ import annotations

from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from losse.jax import native, packed, square
from losse.jax.encoding import IN_BOUNDS, features
from losse.jax.model import Memory, Model, Rows, axes_of, varying

MOST_ATTEMPTS = 20
"""Times that a penalty is raised tenfold, before NaN is taken for an answer."""


@jax.jit
def update(
    model: Model,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> Model:
    """Learn one sample, or a batch one after the other, by Algorithm 2.

    The old model stays valid, so its memory is copied, unless this is compiled into a program
    that gives it up: a `jax.lax.scan` does, and ``jax.jit(update, donate_argnums=0)``.

    Parameters
    ----------
    model
        What was learned so far.
    x, y
        One sample, (n_features,) and (n_outputs,), or a batch, (n, n_features) and
        (n, n_outputs). Targets of a model of single numbers are () or (n,).
    sample_weight
        Weight of each sample, () or (n,); 1 by default. A sample of weight 0 changes nothing,
        even if it is not finite.

    Examples
    --------
    >>> from losse.jax import init, predict
    >>> model = init(jax.random.key(0), 1, 1, n_grids=10, ridge=1e-3)
    >>> X = jnp.linspace(-3, 3, 300)[:, None]
    >>> model = update(model, X, jnp.cos(X))
    >>> bool(abs(predict(model, X) - jnp.cos(X)).max() < 0.1), int(model.memory.n_samples)
    (True, 300)
    """

    rows = _checked(model, x, y, sample_weight)
    start = varying((model.memory, model.weights, model.ridge), rows)
    plain = start[0].A.ndim == 2 and not axes_of(start[0].A)
    known = plain and native.target(np.dtype(model.dtype).name) is not None
    ways = {"cpu": native.learn} if known else {}
    memory, weights = jax.lax.platform_dependent(*start, rows, **ways, default=learn)
    return model.replace(memory=memory, weights=weights)


@jax.jit
def accumulate(
    model: Model,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> Model:
    """Take samples into the memory and leave the weights as they are.

    Parameters are those of `update`. With `leader` it makes up Algorithm 1: for batches from many
    environments it is faster than `update`, and exact.

    Examples
    --------
    >>> from losse.jax import init, leader, predict
    >>> X = jnp.linspace(-3, 3, 300)[:, None]
    >>> model = accumulate(init(jax.random.key(0), 1, 1, n_grids=10), X, jnp.cos(X))
    >>> bool(abs(predict(leader(model), X) - jnp.cos(X)).max() < 0.01)
    True
    """
    rows = _checked(model, x, y, sample_weight)
    start = varying(model.memory, rows)
    memory = jax.lax.scan(lambda m, row: (_remembered(m, row), None), start, rows)[0]
    return model.replace(memory=memory)


@jax.jit
def leader(model: Model) -> Model:
    """Make the weights the leader: the best fit of all samples, by one Cholesky factorisation.

    It takes some D^3 / 3 operations and as much memory as A. Large models, whose memory is
    packed, are refused.

    Examples
    --------
    >>> from losse.jax import init, update
    >>> model = update(init(jax.random.key(0), 2, 1, n_grids=4), jnp.ones((9, 2)), jnp.ones((9, 1)))
    >>> leader(model).weights.shape
    (484, 1)
    """
    A, B = model.memory.A, model.memory.B
    if A.ndim == 3:
        raise ValueError(
            f"model has {len(B):,} features, too many for a factorisation: learn it by update(), "
            "or use fewer grids."
        )
    weights = _ridge_solve(A, model.ridge * model.memory.total, B)
    return model.replace(weights=jnp.where(model.memory.total > 0, weights, 0))


def learn(memory: Memory, W: jax.Array, ridge: jax.Array, rows: Rows) -> tuple[Memory, jax.Array]:
    """Algorithm 2 over rows, one after the other, on any device: the new memory and weights."""

    def one(state: tuple[Memory, jax.Array], row: Rows) -> tuple[tuple[Memory, jax.Array], None]:
        memory = _remembered(state[0], row)
        return (memory, _improved(memory, state[1], ridge, row)), None

    return jax.lax.scan(one, (memory, W), rows)[0]


def _layout(A: jax.Array) -> ModuleType:
    return packed if A.ndim == 3 else square


def _remembered(memory: Memory, row: Rows) -> Memory:
    """Lines 5 and 6 of Algorithm 2: the sums with one more sample."""
    cells, phi, y, weight = row
    products = (weight * phi)[:, None] * y
    return Memory(
        A=_layout(memory.A).add(memory.A, cells, phi, weight),
        B=memory.B.at[cells].add(products, mode=IN_BOUNDS, unique_indices=True),
        squares=memory.squares + weight * y * y,
        total=memory.total + weight,
        n_samples=memory.n_samples + (weight > 0),
    )


def _improved(memory: Memory, W: jax.Array, ridge: jax.Array, row: Rows) -> jax.Array:
    """Line 7 of Algorithm 2: the weights with those of the sample's cells s solved for.

    (A_ss + lambda I) W_s = B_s - A_ss' W_s', with all others s' held fixed. `FTLRegressor` solves
    for a step from the present W_s, which is the same. In single precision, such steps can add
    up to ever larger weights where rows repeat and the ridge is small; here no W_s outlives a step.
    """
    cells, _, _, weight = row
    layout, penalty = _layout(memory.A), ridge * memory.total
    present = W.at[cells].get(mode=IN_BOUNDS)
    others = W.at[cells].set(0, mode=IN_BOUNDS, unique_indices=True)
    right = memory.B.at[cells].get(mode=IN_BOUNDS) - layout.rows_times(memory.A, cells, others)
    solved = _ridge_solve(layout.block(memory.A, cells), penalty, right)
    chosen = jnp.where(weight > 0, solved, present)
    return others.at[cells].set(chosen, mode=IN_BOUNDS, unique_indices=True)


def _ridge_solve(A: jax.Array, penalty: jax.Array, right: jax.Array) -> jax.Array:
    """(A + penalty I)^-1 right.

    Where rounding makes A + penalty I indefinite, the penalty is raised until it is not.
    """
    penalty = jnp.maximum(penalty, np.finfo(A.dtype).eps * jnp.trace(A))

    def solution(penalty: jax.Array) -> jax.Array:
        system = A + penalty * jnp.eye(len(A), dtype=A.dtype)
        L = jax.lax.linalg.cholesky(system, symmetrize_input=False)
        half = jax.lax.linalg.triangular_solve(L, right, left_side=True, lower=True)
        return jax.lax.linalg.triangular_solve(
            L, half, left_side=True, lower=True, transpose_a=True
        )

    def failed(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        attempts, _, found = state
        return jnp.isnan(found[-1, -1]) & (attempts < MOST_ATTEMPTS)

    def retried(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        attempts, last, _ = state
        return attempts + 1, 10 * last, solution(10 * last)

    return jax.lax.while_loop(failed, retried, (jnp.int32(0), penalty, solution(penalty)))[2]


def _checked(model: Model, x: npt.ArrayLike, y: npt.ArrayLike, sample_weight: object) -> Rows:
    """Samples with a first axis, encoded; raises if shapes do not fit."""
    X = model.inputs(x)
    if X.ndim > 2:
        raise ValueError(
            f"x has shape {X.shape}: learn one row, ({model.n_features},), or a batch, "
            f"(n, {model.n_features}); reshape more axes into one."
        )
    Y = jnp.asarray(y, model.dtype)
    expected = X.shape[:-1] + (() if model.single else (model.n_outputs,))
    if Y.shape != expected:
        raise ValueError(
            f"y has shape {Y.shape}, but x of shape {X.shape} and a model of "
            f"{'single numbers' if model.single else f'{model.n_outputs} outputs'} need {expected}."
        )
    w = jnp.asarray(1 if sample_weight is None else sample_weight, model.dtype)
    if w.shape not in ((), X.shape[:-1]):
        raise ValueError(
            f"sample_weight has shape {w.shape}, but x of shape {X.shape} needs one number per "
            f"row, {X.shape[:-1]}."
        )
    X, Y = X.reshape(-1, model.n_features), Y.reshape(-1, model.n_outputs)
    weights = jnp.broadcast_to(w, (len(X),))
    cells, phi = features(model.grids, X)
    if sample_weight is None:
        return cells, phi, Y, weights
    counted = (weights > 0)[:, None]  # 0 times NaN would be NaN
    return cells, jnp.where(counted, phi, 0), jnp.where(counted, Y, 0), weights
