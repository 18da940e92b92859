"""How a model begins: its parameters are checked, its encoder fitted, its solver made."""

from copy import deepcopy
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from losse.encoders import Encoder
from losse.encoders.grid import GridEncoder
from losse.ftl.capacity import require_memory
from losse.ftl.dense import DenseSolver
from losse.ftl.exact import ExactSolver
from losse.ftl.layout import is_packed, memory_bytes, new_memory
from losse.ftl.past import check_past
from losse.ftl.ridges import check_ridge
from losse.ftl.solver import Solver
from losse.ftl.sparse import SparseSolver
from losse.typing import Array

SOLVERS = ("auto", "sparse", "dense", "exact")
DTYPES = ("float64", "float32")
SMALLEST_DISCOUNT = 1e-9
AUTO_ITERATIONS = 2
"""Conjugate gradients per batch that ``solver="auto"`` allows a large model."""


def check_parameters(model: Any) -> None:
    """Raise if a parameter of an `FTLRegressor` makes no sense."""
    if model.encoder is not None and not isinstance(model.encoder, Encoder):
        raise TypeError(
            f"encoder={model.encoder!r} is not an encoder: use one of losse's, such as "
            "LosseEncoder(), or None."
        )
    if model.solver not in SOLVERS:
        raise ValueError(f"solver={model.solver!r} is not known: use one of {SOLVERS}.")
    check_ridge(model.ridge)
    check_past(model.past)
    discount = model.discount
    if not isinstance(discount, Real) or not SMALLEST_DISCOUNT <= discount <= 1:  # type: ignore[operator]
        raise ValueError(
            f"discount={model.discount!r} must be above 0 and at most 1 (1: no discount), and not "
            f"below {SMALLEST_DISCOUNT:.0e}, which would keep nothing."
        )
    if model.dtype not in (*DTYPES, np.float32, np.float64):
        raise ValueError(f'dtype={model.dtype!r} must be "float32" or "float64".')


def fitted_encoder(encoder: Encoder, X: Array, weights: Array) -> Encoder:
    """A copy of a fitted encoder, or a clone of another, fitted on ``X``."""
    if not hasattr(encoder, "projection_"):
        return clone(encoder).fit(X, sample_weight=weights)
    if encoder.n_features_in_ != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but encoder was fitted on "
            f"{encoder.n_features_in_}; pass an encoder that is not fitted, or one for this X."
        )
    own = deepcopy(encoder)
    own.projection_ = encoder.projection_  # a copy made by the setter is aligned
    return own


def new_solver(model: Any, encoder: Encoder, n_outputs: int, ridge: float) -> Solver:
    """Empty memories, in a solver of the kind that the model's parameters ask for."""
    dense_features = encoder.n_active == encoder.dimension
    kind = "dense" if model.solver == "sparse" and dense_features else model.solver
    needed = memory_bytes(encoder, model.dtype)
    D = encoder.dimension
    if kind == "dense" or (kind in ("exact", "auto") and not is_packed(encoder)):
        needed += D**2 * 8.0  # a factor or an inverse beside A
    require_memory(
        needed,
        f"A model of {D:,} features with solver={model.solver!r} and dtype={model.dtype!r}",
        "Lower n_grids, n_bins or grid_dim (n_components for dense encoders), "
        'or use dtype="float32".',
    )
    memory = new_memory(encoder, n_outputs, model.dtype)
    if kind == "dense":
        return DenseSolver(memory, ridge)
    if kind == "sparse":
        return SparseSolver(memory, ridge, encoder.n_active)
    iterations = AUTO_ITERATIONS if kind == "auto" else None
    sparse = isinstance(encoder, GridEncoder)
    return ExactSolver(memory, ridge, encoder.n_active, sparse, iterations)
