"""When is an encoder built, and from what?

An encoder that learns from targets is built from the first ``warm_up`` rows. So that the model
predicts from the first row on, it is also built from a quarter of them, a sixteenth and so on: each
time, all rows are encoded and learned anew, which adds a third to the work of the last time. With a
source of past data, the same goes on at twice, four times, eight times ``warm_up`` rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sklearn.base import clone

from losse.encoders import AdaptiveEncoder, Encoder
from losse.ftl.past import Rows

if TYPE_CHECKING:
    from losse.ftl.regressor import FTLRegressor

LEAST_ROWS = 100
"""Below this, targets say too little of directions."""


def given_encoder(model: FTLRegressor) -> Encoder:
    """The encoder that the parameters ask for."""
    return AdaptiveEncoder() if model.encoder is None else model.encoder


def is_built_again(model: FTLRegressor) -> bool:
    """Whether the encoder may be built more than once: rows are then kept."""
    encoder = given_encoder(model)
    fitted = hasattr(encoder, "projection_")
    return not fitted and (encoder.warm_up > 0 or model.past is not None)


def last_build(model: FTLRegressor) -> float:
    """Rows after which nothing is built again."""
    first = max(1, given_encoder(model).warm_up)
    if model.past is None:
        return first
    if callable(model.past):
        return math.inf
    return first * 2.0 ** math.floor(math.log2(max(1.0, model.past / first)))


def holds_rows(model: FTLRegressor, n: int) -> bool:
    """Whether a model of n rows still needs them for a later build, and has no other source."""
    if callable(model.past):
        return n < given_encoder(model).warm_up
    return n < last_build(model)


def is_due(model: FTLRegressor, built: int, n: int) -> bool:
    """Whether a time to build has come since ``built`` rows.

    >>> from losse import AdaptiveEncoder, FTLRegressor
    >>> model = FTLRegressor(AdaptiveEncoder(warm_up=400), past=1000)
    >>> [n for n in range(1, 2000) if is_due(model, n - 1, n)]
    [1, 2, 7, 25, 100, 400, 800]
    """
    if not is_built_again(model) or built >= last_build(model) or n <= built:
        return False
    first = max(1, given_encoder(model).warm_up)
    return built == 0 or _round(n, first) > _round(built, first)


def _round(n: int, first: int) -> int:
    """How many times to build have come, counted from ``first`` rows, where it is 0."""
    doublings = math.floor(math.log2(n / first))
    return doublings if doublings >= 0 else math.floor(doublings / 2)


def build_encoder(model: FTLRegressor, rows: Rows) -> Encoder:
    """A new encoder for these rows."""
    given = given_encoder(model)
    enough = len(rows) >= min(LEAST_ROWS, max(1, given.warm_up))
    encoder: Encoder = clone(given) if enough else given.early()
    # The latest rows weigh most under a discount, but the units of the memories grow without end.
    encoder.freeze(rows.X, rows.Y, rows.weights / rows.weights.max())
    return encoder
