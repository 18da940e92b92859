"""Follow-the-leader regression: `FTLRegressor`, and the learner, memories and solvers behind it."""

from losse.ftl.regressor import FTLRegressor, merge_all

__all__ = ["FTLRegressor", "merge_all"]
