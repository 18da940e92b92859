"""Who competes, with which parameters?

Everyone gets raw rows.  Those that cannot scale their inputs as they go are given the means and
spreads of the first rows in advance, which is a small gift.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.contender import Array, Contender
from benchmarks.contenders.variants import VARIANTS
from benchmarks.streams.stream import Stream

REFERENCE = 1000  # rows that tell the scale of a stream
DENSE_FEATURES = 2000  # for which an update costs about as much as the recommended model's


def entry(name: str, stream: Stream, seed: int) -> Contender:
    """Make a contender, or a variant of the recommended model, for a stream."""
    if name in VARIANTS:
        from benchmarks.contenders.leaders import Leader

        return Leader(VARIANTS[name](seed))
    return ENTRIES[name](stream.X[:REFERENCE], stream.Y[:REFERENCE], seed)


def _paper(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.leaders import Leader
    from losse import FTLRegressor, LosseEncoder

    return Leader(FTLRegressor(LosseEncoder(seed=seed).fit(X), solver="sparse", ridge=1e-5))


def _recommended(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.leaders import Leader
    from losse import FTLRegressor

    return Leader(FTLRegressor())


def _adaptive(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.leaders import Remembering

    return Remembering(seed)


def _fourier(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.leaders import Leader
    from losse import FourierEncoder, FTLRegressor

    return Leader(FTLRegressor(FourierEncoder(DENSE_FEATURES, seed=seed).fit(X), ridge="auto"))


def _relu(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.leaders import Leader
    from losse import FTLRegressor, ReLUEncoder

    return Leader(FTLRegressor(ReLUEncoder(DENSE_FEATURES, seed=seed).fit(X), ridge="auto"))


def _network(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.network import Network

    return Network(seed)


def _online_network(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.online_network import OnlineNetwork

    return OnlineNetwork(X, Y, seed)


def _forest(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.river_forest import RiverForest

    return RiverForest(X, Y.shape[1], seed)


def _neighbours(X: Array, Y: Array, seed: int) -> Contender:
    from benchmarks.contenders.neighbours import Neighbours

    return Neighbours()


ENTRIES: dict[str, Callable[[Array, Array, int], Contender]] = {
    "recommended": _recommended,
    "adaptive": _adaptive,
    "paper": _paper,
    "fourier": _fourier,
    "relu": _relu,
    "nn-online": _online_network,
    "river-amf": _forest,
    "knn": _neighbours,
    "full-replay": _network,
}
"""In the order of the table: those of one pass first."""

NEEDS = {"nn-online": "jax", "full-replay": "jax", "river-amf": "river"}
"""Packages beyond the core, by contender."""
