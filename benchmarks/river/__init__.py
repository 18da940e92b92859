"""Losse among River's regressors, by progressive validation."""
