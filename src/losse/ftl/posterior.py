r"""The posterior of Bayesian linear regression, from the memories alone: how sure a model is.

With Gaussian noise of variance :math:`\sigma^2` and the prior
:math:`W \sim N(0, \sigma^2 / \lambda)`, of which the leader is the posterior mean, a new target has
the variance

.. math:: \sigma^2 (1 + \phi^T (A + \lambda I)^{-1} \phi).

The noise is what the fit leaves over, :math:`\hat\sigma^2 = \sum w (y - W^T \phi)^2 / (n - d)` for
each output, where :math:`d = \operatorname{tr} A (A + \lambda I)^{-1}` of the n degrees of freedom
have gone into the weights.
"""

import math
import warnings
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dpotri, dtrtrs
from sklearn.exceptions import ConvergenceWarning

from losse._kernels.inverse import mirror
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.capacity import require_memory
from losse.ftl.memories.base import SQUARE_LIMIT
from losse.ftl.solvers.base import Solver, ridge_cholesky
from losse.ftl.solvers.conjugate import block_inverses, solve_system
from losse.ftl.targets import Targets
from losse.typing import Array

PROBES = 8
"""Random vectors that estimate a trace in models too large to invert."""
ROWS = 8
"""Rows whose systems are solved together in such models."""
TOLERANCE = 0.01
"""Of a variance in such models."""
ITERATIONS = 300
"""At most, for one solution in such models."""


class Posterior(ABC):
    """Variances for a solver's memories and weights as they are now.

    ``unit`` is the weight that counts as one sample: with a discount, that of the latest.
    """

    exact = True
    """Whether the trace is computed, not estimated from a few vectors."""

    def __init__(self, solver: Solver, targets: Targets, unit: float, discount: float) -> None:
        self._memory = solver.memory
        self._scale = targets.scale
        self._penalty = solver.penalty
        self._unit = unit
        self._prepare()
        total = self._memory.total / unit
        used = self._memory.dimension - self._penalty * self._trace()  # tr A (A + lambda I)^-1
        errors = targets.squared_errors(self._memory, solver.weights)
        if used >= total and not self.exact:
            # The most likely noise under the prior: a lower figure, but one that needs no trace.
            W = targets.less_mean(solver.weights, targets.mean(self._memory))
            errors += self._penalty * (W**2).sum(axis=0)
            used = 0.0
        freedom = total * (1.0 - used_share(total, used, discount))
        self.noise: Array = errors / (unit * freedom)

    def variance(self, features: Features) -> Array:
        """Variances of new targets, (rows, outputs)."""
        spread = 1.0 + self._unit * np.maximum(self._leverage(features), 0.0)
        return spread[:, None] * (self._scale**2 * self.noise[: len(self._scale)])

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _trace(self) -> float:
        """Trace of (A + lambda I)^-1."""

    @abstractmethod
    def _leverage(self, features: Features) -> Array:
        """phi^T (A + lambda I)^-1 phi per row."""


class InversePosterior(Posterior):
    """With (A + lambda I)^-1 at hand: D^3 operations once, then little for every row."""

    def _prepare(self) -> None:
        D = self._memory.dimension
        require_memory(
            D**2 * 8.0,
            f"return_std=True in a model of {D:,} features",
            "Use fewer features, or predict without return_std.",
        )
        factor, self._penalty = ridge_cholesky(self._memory.square(), self._penalty)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0].T  # LAPACK's lower triangle
        mirror(inverse)
        self._P: Array = inverse

    def _trace(self) -> float:
        return float(self._P.trace())

    def _leverage(self, features: Features) -> Array:
        return features.quadratic(self._P)


class SamplePosterior(Posterior):
    """While all samples are at hand: a system with one unknown per sample, as in `SampleSpace`."""

    def __init__(self, solver: Solver, targets: Targets, unit: float, discount: float) -> None:
        assert solver.samples is not None
        self._samples = solver.samples
        super().__init__(solver, targets, unit, discount)

    def _prepare(self) -> None:
        gram = self._samples.gram.copy()
        self._factor, self._penalty = ridge_cholesky(gram, self._penalty)

    def _trace(self) -> float:
        n = self._samples.size
        inverse = dpotri(self._factor, lower=1)[0]
        return float(self._memory.dimension - n) / self._penalty + float(inverse.trace())

    def _leverage(self, features: Features) -> Array:
        cross = self._samples.features.gram(features)
        half = dtrtrs(self._factor, cross, lower=1)[0]
        return np.asarray(
            ((features.values**2).sum(axis=1) - (half**2).sum(axis=0)) / self._penalty
        )


class IteratedPosterior(Posterior):
    """By conjugate gradients, for models too large to invert: slow, and good to a percent or so."""

    exact = False

    def _prepare(self) -> None:
        self._inverse_blocks = block_inverses(self._memory, self._penalty)

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


def used_share(total: float, used: float, discount: float) -> float:
    r"""The share of the data's weight that the weights of the model have taken up.

    Without a discount, d / n. With one, a recent sample counts more, but also pulls the fit towards
    itself more. If d directions are visited in turn, the share comes out as
    :math:`\tanh(d L / 2) / \tanh(n L / 2)` with :math:`L = -\ln` discount, which tends to d / n; n
    follows from the sum of weights, (1 - discount^n) / (1 - discount).

    >>> used_share(100.0, 20.0, 1.0)
    0.2
    >>> round(used_share((1 - 0.999**100) / 0.001, 20.0, 0.999), 3)
    0.2
    """
    if discount == 1.0:
        share = used / total
    else:
        passed = min(total * (1.0 - discount), 1.0)  # 1 - discount^n
        share = math.tanh(-0.5 * used * math.log(discount)) * (2.0 - passed) / passed
    return min(share, 1.0 - 1e-9)  # below one, but for rounding


def new_posterior(solver: Solver, targets: Targets, unit: float, discount: float) -> Posterior:
    """The posterior in the form that suits the number of features."""
    if solver.samples is not None:
        return SamplePosterior(solver, targets, unit, discount)
    form = IteratedPosterior if solver.memory.large else InversePosterior
    return form(solver, targets, unit, discount)
