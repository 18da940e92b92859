"""Follow-the-leader regression: `FTLRegressor`, and the learner, memories and solvers behind it."""

from losse.ftl.regressor import FTLRegressor, merge_all
from losse.ftl.solvers.base import LeaderWarning

__all__ = ["FTLRegressor", "LeaderWarning", "merge_all"]
