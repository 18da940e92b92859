"""Experiments as sets of runs: records and their store, runner, workers, tables and figures."""
