r"""The posterior of Bayesian linear regression, from the memories alone: how sure a model is.

With Gaussian noise of variance :math:`\sigma^2` and the prior
:math:`W \sim N(0, \sigma^2 / \lambda)`, of which the leader is the posterior mean, a new target has
the variance

.. math:: \sigma^2 (1 + \phi^T (A + \lambda I)^{-1} \phi).

The noise is what the fit leaves over, :math:`\hat\sigma^2 = \sum w (y - W^T \phi)^2 / (n - d)` for
each output, where :math:`d = \operatorname{tr} A (A + \lambda I)^{-1}` of the n degrees of freedom
have gone into the weights.

A posterior follows the solver from batch to batch, so that learning a row costs little more for it.
Three things may lag, by a bound each: lambda in the inverse, by `DRIFT`; lambda in the factor of
few samples, by that of `losse.ftl.solvers.sample_space`; and the noise, until the total weight has
grown by `NOISE_DRIFT`. What a row has taught of its surroundings never lags.
"""

import math
import warnings
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dpotri
from sklearn.exceptions import ConvergenceWarning

from losse._kernels.blas import solve_lower
from losse._kernels.inverse import mirror
from losse._kernels.simd import aligned, padded
from losse.encoders.features import Features
from losse.ftl.capacity import require_memory
from losse.ftl.deferred import Deferred
from losse.ftl.memories.base import SQUARE_LIMIT
from losse.ftl.solvers.base import Solver, ridge_cholesky
from losse.ftl.solvers.conjugate import block_inverses, solve_system
from losse.ftl.targets import Targets
from losse.typing import Array

DRIFT = 1.15
"""Ratio of two lambdas beyond which the inverse is made anew."""
NOISE_DRIFT = 1.01
"""Growth of the total weight after which the noise is found anew."""
PENDING = 64
"""Rows that the inverse follows before they are pushed into it."""
PROBES = 8
"""Random vectors that estimate a trace in models too large to invert."""
ROWS = 8
"""Rows whose systems are solved together in such models."""
TOLERANCE = 0.01
"""Of a variance in such models."""
ITERATIONS = 300
"""At most, for one solution in such models."""


class Posterior(ABC):
    """Variances for a solver's memories and weights, which may learn on meanwhile."""

    exact = True
    """Whether the trace is computed, not estimated from a few vectors."""

    def __init__(self, solver: Solver, targets: Targets) -> None:
        self._solver = solver
        self._targets = targets
        self._memory = solver.memory
        self._noise: Array = np.empty(0)
        self._noise_for = (np.inf, np.inf)  # total and ridge

    @property
    @abstractmethod
    def serves(self) -> bool:
        """Whether this form still suits the solver, and what it keeps can follow."""

    @abstractmethod
    def learned(self, features: Features, weights: Array) -> None:
        """Take note of rows that the solver has learned."""

    def uncertainty(self, features: Features, unit: float, discount: float) -> tuple[Array, Array]:
        """Leverages of rows and the noise of outputs: variances are noise (1 + leverage).

        ``unit`` is the weight that counts as one sample: with a discount, that of the latest.
        """
        self._follow()
        now = self._memory.total, self._solver.ridge
        if now[1] != self._noise_for[1] or not 1 <= now[0] / self._noise_for[0] <= NOISE_DRIFT:
            self._noise, self._noise_for = self._find_noise(unit, discount), now
        return unit * np.maximum(self._leverage(features), 0.0), self._noise

    def _find_noise(self, unit: float, discount: float) -> Array:
        solver, targets = self._solver, self._targets
        total = self._memory.total / unit
        used = self._memory.dimension - self._penalty * self._trace()  # tr A (A + lambda I)^-1
        errors = targets.squared_errors(self._memory, solver.weights)
        if used >= total and not self.exact:
            # The most likely noise under the prior: a lower figure, but one that needs no trace.
            W = targets.less_mean(solver.weights, targets.mean(self._memory))
            errors += self._penalty * (W**2).sum(axis=0)
            used = 0.0
        freedom = total * (1.0 - used_share(total, used, discount))
        return np.asarray(targets.scale**2 * errors[: targets.n_outputs] / (unit * freedom))

    @property
    @abstractmethod
    def _penalty(self) -> float:
        """Lambda of what is kept."""

    @abstractmethod
    def _follow(self) -> None:
        """Bring what is kept up to date."""

    @abstractmethod
    def _trace(self) -> float:
        """Trace of (A + lambda I)^-1."""

    @abstractmethod
    def _leverage(self, features: Features) -> Array:
        """phi^T (A + lambda I)^-1 phi per row."""


class InversePosterior(Posterior):
    r"""With :math:`P = (A + \lambda I)^{-1}` at hand: D^3 operations once, then little for a row.

    P follows rows that are learned by changes of low rank (Woodbury's identity), which are
    collected and pushed into it together. Its lambda stays until it is `DRIFT` off.
    """

    def __init__(self, solver: Solver, targets: Targets) -> None:
        super().__init__(solver, targets)
        D = self._memory.dimension
        require_memory(
            D**2 * 8.0,
            f"return_std=True in a model of {D:,} features",
            "Use fewer features, or predict without return_std.",
        )
        size = padded(D)
        self._asked = solver.penalty
        factor, self._own_penalty = ridge_cholesky(self._memory.square(), self._asked)
        P = aligned((size, size))
        P[:D, :D] = dpotri(factor, lower=1, overwrite_c=1)[0].T  # LAPACK's lower triangle
        mirror(P)
        self._inverse = Deferred(P, sign=-1.0)
        self._ahead: list[Features] = []  # rows that P has yet to follow

    @property
    def serves(self) -> bool:
        ratio = self._solver.penalty / self._asked
        waiting = sum(map(len, self._ahead))
        return 1 / DRIFT <= ratio <= DRIFT and waiting <= self._memory.dimension // 4

    def learned(self, features: Features, weights: Array) -> None:
        if self.serves:  # or else it is to be made anew
            self._ahead.append(features.scaled(np.sqrt(weights)))

    @property
    def _penalty(self) -> float:
        return self._own_penalty

    def _follow(self) -> None:
        for features in self._ahead:
            for start in range(0, len(features), PENDING):
                self._change(features[start : start + PENDING])
        self._ahead.clear()

    def _change(self, features: Features) -> None:
        """P -= T^T T with L L^T = I + Phi P Phi^T and T = L^-1 Phi P."""
        n, inverse = len(features), self._inverse
        if len(inverse.waiting) + n > PENDING:
            inverse.enter()
        T = aligned((n, len(inverse.matrix)))
        features.combine(inverse.matrix, T)
        T -= features.inner(inverse.waiting) @ inverse.waiting
        L = np.linalg.cholesky(np.eye(n) + features.inner(T))
        solve_lower(L, T)
        inverse.append(T)

    def _trace(self) -> float:
        return float(self._inverse.matrix.trace() - (self._inverse.waiting**2).sum())

    def _leverage(self, features: Features) -> Array:
        inner = features.inner(self._inverse.waiting)
        return features.quadratic(self._inverse.matrix) - (inner**2).sum(axis=1)


class SamplePosterior(Posterior):
    """While all samples are at hand: with the factor of `SampleSpace`, one row per sample.

    Its lambda is that of the solver but for `losse.ftl.solvers.sample_space.DRIFT`.
    """

    def __init__(self, solver: Solver, targets: Targets) -> None:
        super().__init__(solver, targets)
        assert solver.samples is not None
        self._samples = solver.samples
        self._inverse_trace = self._samples.inverse_trace()

    @property
    def serves(self) -> bool:
        return self._solver.samples is self._samples

    def learned(self, features: Features, weights: Array) -> None:
        """Do nothing: the solver has the samples."""

    @property
    def _penalty(self) -> float:
        return self._samples.penalty

    def _follow(self) -> None:
        self._inverse_trace = self._samples.inverse_trace(self._inverse_trace)

    def _trace(self) -> float:
        samples = self._samples
        beyond = float(self._memory.dimension - samples.size) / samples.penalty
        return beyond + self._inverse_trace.value

    def _leverage(self, features: Features) -> Array:
        return self._samples.leverages(features)


class IteratedPosterior(Posterior):
    """By conjugate gradients, for models too large to invert: slow, and good to a percent or so."""

    exact = False

    def __init__(self, solver: Solver, targets: Targets) -> None:
        super().__init__(solver, targets)
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


def new_posterior(solver: Solver, targets: Targets) -> Posterior:
    """The posterior in the form that suits the number of features."""
    if solver.samples is not None:
        return SamplePosterior(solver, targets)
    form = IteratedPosterior if solver.memory.large else InversePosterior
    return form(solver, targets)
