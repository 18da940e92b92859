"""`SamplePosterior`: from all samples, while they are at hand."""

import numpy as np

from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.posterior.base import Posterior
from losse.ftl.solvers.base import Solver
from losse.ftl.targets import Targets
from losse.typing import Array


class SamplePosterior(Posterior):
    """While all samples are at hand: with the factor of `SampleSpace`, one row per sample.

    Its lambda is that of the solver but for `losse.ftl.solvers.sample_space.DRIFT`.
    """

    def __init__(self, encoder: Encoder, solver: Solver, targets: Targets) -> None:
        super().__init__(encoder, solver, targets)
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

    def _squared_errors(self) -> Array:
        mean = self._targets.mean(self._memory)
        errors = self._targets.less_mean(self._samples.residuals(), mean)
        return np.asarray((errors**2).sum(axis=0))

    def _trace(self) -> float:
        samples = self._samples
        beyond = float(self._memory.dimension - samples.size) / samples.penalty
        return beyond + self._inverse_trace.value

    def _leverage(self, features: Features) -> Array:
        return self._samples.leverages(features)
