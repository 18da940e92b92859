"""Functional form in JAX: pure functions over one pytree, for compiled loops and accelerators.

`init` or `from_regressor` makes a `Model`. `update` learns rows by Algorithm 2 and returns another
model, `predict` predicts, `accumulate` and `leader` are Algorithm 1 in two parts, and `merge` adds
up what was learned apart. All work inside `jit`, `vmap`, `scan` and `shard_map`, and `predict` can
be differentiated. The numbers are those of ``FTLRegressor(LosseEncoder(...), solver="sparse")``.

Examples
--------
>>> import jax
>>> import losse.jax
>>> X = jax.random.uniform(jax.random.key(0), (500, 2), minval=-1, maxval=1)
>>> Y = jax.numpy.sin(3 * X)
>>> model = losse.jax.init(jax.random.key(1), 2, 2, n_grids=10, scaling=(-1, 1), ridge=1e-3)
>>> model = losse.jax.update(model, X[:400], Y[:400])
>>> errors = losse.jax.predict(model, X[400:]) - Y[400:]
>>> bool(abs(errors).mean() < 0.1)
True
"""

from losse.extras import missing

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("losse.jax", "jax", extra="jax") from error

from losse.jax.conversion import from_regressor, to_regressor
from losse.jax.encoding import encode, predict
from losse.jax.learning import accumulate, leader, update
from losse.jax.merging import merge, merge_across
from losse.jax.model import Grids, Memory, Model, init

__all__ = [
    "Grids",
    "Memory",
    "Model",
    "accumulate",
    "encode",
    "from_regressor",
    "init",
    "leader",
    "merge",
    "merge_across",
    "predict",
    "to_regressor",
    "update",
]
