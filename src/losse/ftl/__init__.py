"""Follow-the-leader regression: the memories A and B, the solvers, and `FTLRegressor`."""

from losse.ftl.merging import merge_all
from losse.ftl.regressor import FTLRegressor

__all__ = ["FTLRegressor", "merge_all"]
