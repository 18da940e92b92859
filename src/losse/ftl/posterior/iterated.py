"""`IteratedPosterior`: from the memories, one system of equations for each row."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from losse._kernels.simd import aligned, padded
from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.memories.base import SQUARE_LIMIT
from losse.ftl.posterior.base import Posterior
from losse.ftl.solvers.base import Solver
from losse.ftl.solvers.conjugate import block_inverses, solve_system
from losse.ftl.targets import Targets
from losse.typing import Array

PROBES = 8
"""Random vectors that estimate the trace."""
ROWS = 8
"""Rows whose systems are solved together."""
TOLERANCE = 0.01
"""Of a variance."""
ITERATIONS = 300
"""At most, for one solution."""


class IteratedPosterior(Posterior):
    """By conjugate gradients, for models too large to invert: slow, and good to a percent or so."""

    exact = False

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        super().__init__(encoder, solver, targets)
        self._inverse_blocks = block_inverses(self._memory, self._penalty)
        self._stale = False

    @property
    def serves(self) -> bool:
        return not self._stale

    def learned(self, features: Features, weights: Array) -> None:
        self._stale = True

    @property
    def _penalty(self) -> float:
        return self._solver.penalty

    def _follow(self) -> None:
        """Do nothing: it reads the memories."""

    def _trace(self) -> float:
        D = self._memory.dimension
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(D, PROBES))
        return float((signs * self._solve(signs)).sum() / PROBES)

    def _leverage(self, features: Features) -> Array:
        out = np.empty(len(features))
        for start in range(0, len(features), ROWS):
            some = features[start : start + ROWS]
            columns = aligned((self._memory.dimension, padded(len(some))))
            unit = aligned((len(some), columns.shape[1]))
            np.einsum("ii->i", unit[:, : len(some)])[:] = 1.0
            some.add_transposed(unit, np.ones(len(some)), columns)
            out[start : start + ROWS] = (columns * self._solve(columns)).sum(axis=0)[: len(some)]
        return out

    def _solve(self, columns: Array) -> Array:
        solution, near = solve_system(
            self._memory, self._penalty, self._inverse_blocks, columns, TOLERANCE, ITERATIONS
        )
        if not near:
            warnings.warn(
                f"return_std=True: {ITERATIONS} iterations were not enough for standard deviations "
                "within a percent, and they may come out too small. Use a larger ridge, or a model "
                f"of at most {SQUARE_LIMIT:,} features.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution
