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
from abc import ABC, abstractmethod

import numpy as np

from losse._kernels.simd import aligned
from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.solvers.base import Solver
from losse.ftl.targets import Targets
from losse.typing import Array

DRIFT = 1.15
"""Ratio of two lambdas beyond which what is kept is made anew, or changed."""
NOISE_DRIFT = 1.01
"""Growth of the total weight after which the noise is found anew."""


class Posterior(ABC):
    """Variances for a solver's memories and weights, which may learn on meanwhile."""

    exact = True
    """Whether the trace is computed, not estimated from a few vectors."""

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        self._encoder = encoder
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

    def uncertainty(self, X: Array, unit: float, discount: float) -> tuple[Array, Array, Array]:
        """Predictions W^T phi of the solver, leverages of rows and the noise of outputs.

        Variances are noise (1 + leverage). ``unit`` is the weight that counts as one sample: with a
        discount, that of the latest.
        """
        self._follow()
        now = self._memory.total, self._solver.ridge
        if now[1] != self._noise_for[1] or not 1 <= now[0] / self._noise_for[0] <= NOISE_DRIFT:
            self._noise, self._noise_for = self._find_noise(unit, discount), now
        predictions, leverages = self._predict(X)
        return predictions, unit * np.maximum(leverages, 0.0), self._noise

    def _predict(self, X: Array) -> tuple[Array, Array]:
        """W^T phi and phi^T (A + lambda I)^-1 phi per row."""
        predictions = aligned((len(X), self._solver.weights.shape[1]))
        columns = self._targets.n_columns
        self._encoder.times(X, self._solver.weights, predictions, columns)
        return predictions, self._leverage(self._encoder.encode(X))

    def _find_noise(self, unit: float, discount: float) -> Array:
        solver, targets = self._solver, self._targets
        total = self._memory.total / unit
        used = self._memory.dimension - self._penalty * self._trace()  # tr A (A + lambda I)^-1
        errors = self._squared_errors()
        if used >= total and not self.exact:
            # The most likely noise under the prior: a lower figure, but one that needs no trace.
            W = targets.less_mean(solver.weights, targets.mean(self._memory))
            errors += self._penalty * (W**2).sum(axis=0)
            used = 0.0
        freedom = total * (1.0 - used_share(total, used, discount))
        noise = targets.scale**2 * errors[: targets.n_outputs] / (unit * freedom)
        # A single row is its own mean, and says nothing of the noise.
        return np.where((noise == 0.0) & (total <= 1.0), np.inf, noise)

    def _squared_errors(self) -> Array:
        """Sum of w (y - prediction)^2 per output, in the units of the sums, padded like B."""
        return self._targets.squared_errors(self._memory, self._solver.weights)

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
