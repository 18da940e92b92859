"""Conversion of models to and from `losse.FTLRegressor`, which goes on where the other stopped."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from losse import FTLRegressor, LosseEncoder
from losse.ftl.checkpoint import KIND, VERSION
from losse.ftl.solvers.exact import OWED
from losse.jax import packed, square
from losse.jax.model import Grids, Memory, Model, is_traced, precision
from losse.scaling import LIMIT
from losse.storage.archive import open_archive, write_archive
from losse.storage.state import COMPACT, StateReader


def from_regressor(regressor: FTLRegressor, dtype: npt.DTypeLike | None = None) -> Model:
    """Make a model that has learned what a regressor has, whatever its solver.

    Parameters
    ----------
    regressor
        A fitted `losse.FTLRegressor` with a `losse.LosseEncoder` and no discount.
    dtype
        ``"float32"``, or ``"float64"`` if ``jax_enable_x64`` is on; by default JAX's own.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    >>> encoder = LosseEncoder(n_grids=5, scaling=(-1, 1))
    >>> regressor = FTLRegressor(encoder, solver="sparse", ridge=1e-3).fit(X, np.sin(X))
    >>> from losse.jax import predict
    >>> model = from_regressor(regressor)
    >>> bool(np.allclose(predict(model, X), regressor.predict(X), atol=1e-5))
    True
    """
    if not isinstance(regressor, FTLRegressor):
        raise TypeError(f"regressor={regressor!r} is not an FTLRegressor.")
    encoder = regressor.encoder_
    if type(encoder) is not LosseEncoder:
        raise TypeError(
            f"regressor.encoder_={encoder!r} has no functional form: only a LosseEncoder has one, "
            "as in FTLRegressor(LosseEncoder())."
        )
    if encoder.linear not in (False, True):
        raise ValueError(
            f"regressor.encoder_.linear={encoder.linear!r} has no functional form: use True or "
            "False."
        )
    if regressor.discount != 1.0:
        raise ValueError(
            f"regressor.discount={regressor.discount!r} has no functional form: use discount=1."
        )
    real = precision(dtype)
    values, arrays = _checkpoint(regressor)
    if "targets.shift" in arrays:
        raise ValueError(
            f"regressor.center={regressor.center!r} centres the targets, which has no functional "
            "form: use center=False."
        )
    if "solver.memory.border" in arrays:
        raise ValueError(
            f"regressor.encoder_={encoder!r} has a linear part beside {encoder.dimension:,} "
            "features, too many for the functional form: use linear=False or fewer grids."
        )
    grids = Grids(
        shift=jnp.asarray(arrays["encoder.shift"], real),
        factor=jnp.asarray(arrays["encoder.scale"], real),
        projection=jnp.asarray(arrays["encoder.projection"], real),
        n_bins=encoder.n_bins,
        linear=bool(encoder.linear),
        limit=math.inf if encoder.scaling is None else LIMIT,
    )
    memory = Memory(
        A=_settled(values, arrays, real),
        B=jnp.asarray(arrays["solver.memory.B"], real),
        squares=jnp.asarray(arrays["solver.memory.squares"], real),
        total=jnp.asarray(values["solver.memory.total"], real),
        n_samples=jnp.asarray(regressor.n_samples_seen_, jnp.int32),
    )
    weights, ridge = (jnp.asarray(part, real) for part in (regressor.weights_, regressor.ridge_))
    return Model(grids, memory, weights, ridge, single=values["single"])


def to_regressor(model: Model) -> FTLRegressor:
    """Make a regressor with ``solver="sparse"`` that has learned what a model has.

    Its test-then-train errors begin anew.

    Examples
    --------
    >>> from losse.jax import init, predict, update
    >>> model = init(jax.random.key(0), 2, 2, n_grids=5, ridge=1e-3)
    >>> X = jax.random.normal(jax.random.key(1), (200, 2))
    >>> regressor = to_regressor(update(model, X, jnp.sin(X)))
    >>> regressor.partial_fit(np.asarray(X), np.sin(X)).n_samples_seen_
    400
    """
    if is_traced(model):
        raise TypeError("model is being traced: call to_regressor() outside of jit, vmap and scan.")
    grids, memory = model.grids, model.memory
    encoder = LosseEncoder(
        grids.n_grids,
        grids.n_bins,
        grids.grid_dim,
        linear=grids.linear,
        scaling=None if grids.limit == math.inf else "standard",
    ).fit(np.zeros((16, grids.n_features)))
    blank = FTLRegressor(
        encoder, solver="sparse", ridge=float(model.ridge), dtype=np.dtype(model.dtype).name
    )
    x, y = np.zeros((1, grids.n_features)), np.zeros(1 if model.single else (1, model.n_outputs))
    values, arrays = _checkpoint(blank.fit(x, y).unlearn(x, y))
    learned = {
        "encoder.shift": grids.shift,
        "encoder.scale": grids.factor,
        "encoder.projection": grids.projection,
        "solver.memory.A": memory.A,
        "solver.memory.B": memory.B,
        "solver.memory.squares": memory.squares,
        "solver.weights": model.weights,
    }
    for name, part in learned.items():
        arrays[name] = np.asarray(part, arrays[name].dtype)
    values["solver.memory.total"] = float(memory.total)
    values["n_samples_seen"] = int(memory.n_samples)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.losse")
        write_archive(path, KIND, VERSION, values, arrays)
        return FTLRegressor.load(path, progress=False)


def _checkpoint(regressor: FTLRegressor) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Values and arrays of a regressor's checkpoint, which is where it shows its memories."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.losse")
        regressor.save(path, progress=False)
        with open_archive(path, KIND, VERSION) as archive:
            arrays = StateReader(archive, path).arrays()
            return {
                name: archive.header[name] for name in archive.header if name != COMPACT
            }, arrays


def _settled(values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], real: Any) -> jax.Array:
    """A with the rows that wait to enter it, if it is packed, or that it is to be made of."""
    A = jnp.asarray(arrays["solver.memory.A"], real)
    if "solver.memory.waiting_indices" in arrays:
        add, rows = packed.add, "solver.memory.waiting_"
    elif values.get("solver.method") == OWED:
        add, rows = square.add, "solver.samples."
    else:
        return A
    cells = jnp.asarray(arrays[f"{rows}indices"])
    phi = jnp.asarray(arrays[f"{rows}values"], real)
    one = jnp.ones((), real)
    return jax.lax.scan(lambda A, row: (add(A, *row, one), None), A, (cells, phi))[0]
