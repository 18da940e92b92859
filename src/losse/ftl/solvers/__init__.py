"""Solvers, which keep weights close to the leader: Algorithms 1 and 2 of the paper, and exact.

`sparse` is Algorithm 2, `dense` is Algorithm 1. `exact` reaches the leader after every batch
without a factorisation each time.
"""

from losse.encoders import Encoder
from losse.ftl.capacity import require_memory
from losse.ftl.memories import Memory, is_packed, memory_bytes, new_memory
from losse.ftl.solvers.base import Solver
from losse.ftl.solvers.dense import DenseSolver
from losse.ftl.solvers.exact import ExactSolver
from losse.ftl.solvers.sparse import FastSparseSolver, SparseSolver

__all__ = ["SOLVERS", "Solver", "new_solver"]

SOLVERS = ("auto", "sparse", "dense", "exact")
AUTO_ITERATIONS = 2
"""Conjugate gradients per batch that ``"auto"`` allows a large model."""


def new_solver(solver: str, encoder: Encoder, n_outputs: int, ridge: float, dtype: str) -> Solver:
    """Empty memories for a fitted encoder, in a solver of the kind asked for."""
    dense_features = encoder.n_active == encoder.dimension
    kind = "dense" if solver == "sparse" and dense_features else solver
    needed = memory_bytes(encoder, dtype)
    D = encoder.dimension
    if kind == "dense" or (kind in ("exact", "auto") and not is_packed(encoder)):
        needed += D**2 * 8.0  # a factor or an inverse beside A
    require_memory(
        needed,
        f"A model of {D:,} features with solver={solver!r} and dtype={dtype!r}",
        "Lower n_grids, n_bins or grid_dim (n_components for dense encoders), "
        'or use dtype="float32".',
    )
    memory: Memory = new_memory(encoder, n_outputs, dtype)
    if kind == "dense":
        return DenseSolver(memory, ridge)
    if kind == "sparse" and memory.large:
        return SparseSolver(memory, ridge)
    if kind == "sparse":
        return FastSparseSolver(memory, ridge, encoder.n_active)
    iterations = AUTO_ITERATIONS if kind == "auto" else None
    return ExactSolver(memory, ridge, encoder.no_features(), iterations)
