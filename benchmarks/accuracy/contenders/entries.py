"""The contenders of `losse bench accuracy` by name.

Everyone gets raw rows.  Those that cannot scale their inputs as they go are given the means and
spreads of the first rows in advance, which is a small gift.
"""

from __future__ import annotations

from importlib import import_module

from benchmarks.accuracy.contenders.contender import Contender
from benchmarks.accuracy.contenders.leaders import VARIANTS, Leader
from benchmarks.accuracy.streams.stream import Stream

REFERENCE = 1000  # rows that tell the scale of a stream

ENTRIES = {
    "recommended": "leaders",
    "adaptive": "leaders",
    "paper": "leaders",
    "fourier": "leaders",
    "relu": "leaders",
    "nn-online": "networks",
    "river-amf": "peers",
    "river-srp": "peers",
    "vowpal-wabbit": "peers",
    "knn": "peers",
    "ridge": "batch",
    "boosting": "batch",
    "mlp": "batch",
    "rebuilt": "leaders",
    "full-replay": "networks",
}
"""The module that makes each, in the order of the table: those of one pass first."""
TRAINED_AT_CHECKPOINTS = ("rebuilt", "full-replay")
"""Those whose predictions between two checkpoints say nothing."""

TABULAR = (
    "recommended",
    "fourier",
    "river-amf",
    "river-srp",
    "vowpal-wabbit",
    "ridge",
    "boosting",
    "mlp",
)
"""Who learns tables, unless others are named."""
TRANSITIONS = (
    "recommended",
    "adaptive",
    "paper",
    "fourier",
    "relu",
    "nn-online",
    "river-amf",
    "knn",
    "rebuilt",
    "full-replay",
)
"""Who learns transitions of environments, unless others are named."""

NEEDS: dict[str, tuple[str, ...]] = {
    "nn-online": ("jax", "flax", "optax"),
    "full-replay": ("jax", "flax", "optax"),
    "river-amf": ("river",),
    "river-srp": ("river",),
    "vowpal-wabbit": ("vowpalwabbit",),
}
"""Packages beyond the core, by contender."""


def entry(name: str, stream: Stream, seed: int) -> Contender:
    """Make a contender, or a variant of the recommended model, for a stream."""
    if name in VARIANTS:
        return Leader(VARIANTS[name](seed))
    # Networks and forests are imported only where they compete.
    makers = import_module(f"benchmarks.accuracy.contenders.{ENTRIES[name]}").MAKERS
    made: Contender = makers[name](stream.X[:REFERENCE], stream.Y[:REFERENCE], seed)
    return made
