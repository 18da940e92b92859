"""Posteriors, which say how sure a model is: see `losse.ftl.posterior.base`."""

from losse.encoders import Encoder
from losse.ftl.posterior.base import Posterior
from losse.ftl.posterior.drawn import ACTIVE, DrawnPosterior
from losse.ftl.posterior.inverse import InversePosterior
from losse.ftl.posterior.iterated import IteratedPosterior
from losse.ftl.posterior.sample import SamplePosterior
from losse.ftl.solvers.base import Solver
from losse.ftl.targets import Targets

__all__ = ["Posterior", "new_posterior"]


def new_posterior(encoder: Encoder, solver: Solver, targets: Targets) -> Posterior:
    """The posterior in the form that suits the number of features and what the solver keeps."""
    if solver.samples is not None:
        return SamplePosterior(encoder, solver, targets)
    if solver.memory.large:
        return IteratedPosterior(encoder, solver, targets)
    drawn = solver.inverse is not None and encoder.n_active > ACTIVE
    return (DrawnPosterior if drawn else InversePosterior)(encoder, solver, targets)
