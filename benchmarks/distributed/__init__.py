"""Benchmark of learning on a cluster, `losse bench distributed`."""
