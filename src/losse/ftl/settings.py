"""`Settings`: what a learner is made with, checked, and the schedule of builds that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from losse.checks import check_count, check_positive, check_rows, check_targets, check_weights
from losse.encoders import AdaptiveEncoder, Encoder
from losse.encoders import registry as encoders
from losse.ftl.kept_rows import Rows
from losse.ftl.solvers import SOLVERS
from losse.storage.state import State, StateReader

DTYPES = ("float64", "float32")
SMALLEST_DISCOUNT = 1e-9
MOST_ROWS = 2**62

Source = Callable[[], tuple[Any, ...] | None]
"""Returns past rows as (X, y) or (X, y, sample_weight), or None if they are not at hand."""


@dataclass(frozen=True)
class Settings:
    """The parameters of `losse.FTLRegressor`, which documents them."""

    encoder: Encoder
    solver: str = "auto"
    ridge: float | str = "auto"
    discount: float = 1.0
    past: int | Source | None = None
    center: bool | str = "auto"
    dtype: str = "float64"

    @classmethod
    def of(cls, regressor: Any) -> Settings:
        """The settings that the parameters of an `FTLRegressor` stand for."""
        values = {field.name: getattr(regressor, field.name) for field in fields(cls)}
        if values["encoder"] is None:
            values["encoder"] = AdaptiveEncoder()
        return cls(**values)

    def check(self) -> None:
        """Raise if a parameter makes no sense."""
        if not isinstance(self.encoder, Encoder):
            raise TypeError(
                f"encoder={self.encoder!r} is not an encoder: use one of losse's, such as "
                "LosseEncoder(), or None."
            )
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r} is not known: use one of {SOLVERS}.")
        if not (isinstance(self.ridge, str) and self.ridge == "auto"):
            check_positive("ridge", self.ridge)
        if self.center not in (True, False) and not (
            isinstance(self.center, str) and self.center == "auto"
        ):
            raise ValueError(f'center={self.center!r} must be True, False or "auto".')
        _check_past(self.past)
        discount = self.discount
        if not isinstance(discount, Real) or not SMALLEST_DISCOUNT <= discount <= 1:
            raise ValueError(
                f"discount={discount!r} must be above 0 and at most 1 (1: no discount), and not "
                f"below {SMALLEST_DISCOUNT:.0e}, which would keep nothing."
            )
        if self.dtype not in (*DTYPES, np.float32, np.float64):
            raise ValueError(f'dtype={self.dtype!r} must be "float32" or "float64".')

    @property
    def centred(self) -> bool:
        """Whether predictions are pulled towards the mean of the targets, rather than zero."""
        if self.center == "auto":
            return self.ridge == "auto" or self.encoder.warm_up > 0
        return bool(self.center)

    @property
    def schedule(self) -> BuildSchedule:
        """When the encoder is built."""
        warm_up = 0 if self.encoder.fitted else self.encoder.warm_up
        past = None if self.encoder.fitted else self.past
        return BuildSchedule(warm_up, past)

    @property
    def window(self) -> float:
        """Rows that count under the discount."""
        return math.inf if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    def state(self) -> State:
        """Values for a checkpoint; the encoder as if it were not fitted, no function."""
        parameters = {
            "solver": self.solver,
            "ridge": "auto" if self.ridge == "auto" else float(self.ridge),
            "discount": float(self.discount),
            "center": self.center if self.center == "auto" else bool(self.center),
            "past": None if self.past is None or callable(self.past) else int(self.past),
            "dtype": np.dtype(self.dtype).name,
        }
        return {"parameters": parameters, "given_encoder": encoders.describe(self.encoder)}

    @classmethod
    def read(cls, saved: StateReader) -> Settings:
        """The settings that `state` has returned."""
        values = saved.value("parameters")
        names = {field.name for field in fields(cls)} - {"encoder"}
        if isinstance(values, Mapping):
            values = {"center": False} | dict(values)  # of version 0.1
        if not isinstance(values, Mapping) or set(values) != names:
            saved.refuse(f"parameters={values!r} are not those of a model")
        encoder: Encoder = AdaptiveEncoder()
        if saved.value("given_encoder") is not None:  # None stands for the default
            encoder = encoders.read(saved, "given_encoder")
        settings = cls(encoder, **values)
        try:
            settings.check()
        except (TypeError, ValueError) as error:
            saved.refuse(f"parameters are wrong, {error}")
        return settings

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments of an `FTLRegressor` with these settings."""
        return vars(self).copy()

    def with_encoder(self, encoder: Encoder) -> Settings:
        """The same settings with another encoder."""
        return replace(self, encoder=encoder)

    def fitted_encoder(self, rows: Rows) -> Encoder:
        """A copy of the encoder if it is fitted, or else a clone that is fitted on the rows."""
        encoder = self.encoder
        if not encoder.fitted:
            return clone(encoder).fit(rows.X, sample_weight=rows.weights)
        if encoder.n_features_in_ != rows.X.shape[1]:
            raise ValueError(
                f"X has {rows.X.shape[1]} features, but encoder was fitted on "
                f"{encoder.n_features_in_}; pass an encoder that is not fitted, or one for this X."
            )
        own = deepcopy(encoder)
        own.projection_ = encoder.projection_  # a copy made by the setter is aligned
        return own

    def past_rows(self, n_features: int, n_outputs: int) -> Rows | None:
        """Rows that the source of past data returns, checked.

        Without weights of its own, the latest row is the most recent one for a discount.
        """
        assert callable(self.past)
        found = self.past()
        if found is None:
            return None
        given = tuple(found)
        if len(given) not in (2, 3):
            raise ValueError(
                f"past() returned {len(given)} arrays: return X, y or X, y, sample_weight."
            )
        X = check_rows("X of past()", given[0], n_features)
        Y = check_targets(given[1], len(X), n_outputs).reshape(len(X), -1)
        if len(given) == 3:
            weights = check_weights(given[2], len(X))
        else:
            weights = self.discount ** np.arange(len(X) - 1.0, -1.0, -1.0)
        return Rows(X, Y, weights).take(weights > 0)


GROWN, LEAST_NEW = 1.25, 16
"""Rows after which an encoder may be built out of turn: those of the last times this, and more."""
MOST_OUTSIDE = 0.2
"""Share of the rows since then in which an input may be beyond the encoder's range."""
DOUBLING = 2000
"""Rows from which an encoder is built at each doubling."""


@dataclass(frozen=True)
class BuildSchedule:
    """When an encoder is built from the rows so far.

    An encoder that learns from targets is built from the first ``warm_up`` rows. So that the model
    predicts from the first row on, it is also built from a quarter of them, a sixteenth and so on:
    each time, all rows are encoded and learned anew, which adds a third to the work of the last
    time. Above `DOUBLING` rows it is built from half of them as well, and a build out of turn that
    comes shortly before does for the next one. With ``past`` data, the same goes on at twice, four
    times, eight times ``warm_up`` rows.

    Examples
    --------
    >>> schedule = BuildSchedule(warm_up=400, past=1000)
    >>> [n for n in range(1, 2000) if schedule.is_due(n - 1, n)]
    [1, 2, 7, 25, 100, 400, 800]
    >>> schedule = BuildSchedule(warm_up=32000, past=None)
    >>> built = [32]
    >>> for n in range(33, 40000):
    ...     if schedule.is_due(built[-1], n):
    ...         built.append(n)
    >>> built
    [32, 125, 500, 2000, 4000, 8000, 16000, 32000]
    >>> schedule.is_due(3100, 4000), schedule.is_due(3700, 4000), schedule.is_due(3700, 8000)
    (True, False, True)
    """

    warm_up: int
    past: int | Source | None

    @property
    def repeats(self) -> bool:
        """Whether the encoder may be built more than once: rows are then kept."""
        return self.warm_up > 0 or self.past is not None

    @property
    def last(self) -> float:
        """Rows after which nothing is built again."""
        if self.past is None:
            return self._first
        if callable(self.past):
            return math.inf
        return self._first * 2.0 ** math.floor(math.log2(max(1.0, self.past / self._first)))

    def keeps_rows(self, n: int) -> bool:
        """Whether a model of n rows still needs them for a later build, and has no source."""
        return self._served(n) < (self.warm_up if callable(self.past) else self.last)

    def is_due(self, built: int, n: int) -> bool:
        """Whether a time to build has come since ``built`` rows."""
        if not self.repeats or n <= built or self._served(built) >= self.last:
            return False
        return built == 0 or self._round(n) > self._round(self._served(built))

    @staticmethod
    def _served(built: int) -> float:
        """Rows up to which a build does: more than it has seen, where another would take long."""
        return GROWN * built if built >= DOUBLING else built

    @staticmethod
    def has_left(n: int, built: int, since: int, outside: int) -> bool:
        """Whether an input has left the range in which it was when the encoder was built.

        As in a stream that is sorted: beyond that range the encoder sees no differences. Of
        ``since`` rows with this encoder, ``outside`` were beyond it. Neighbours are alike, so that
        a few of them say little.

        >>> [BuildSchedule.has_left(1500, 1000, since=n, outside=n) for n in (40, 60)]
        [False, True]
        """
        grown = (GROWN - 1.0) * built + LEAST_NEW
        return n >= built + grown and outside > MOST_OUTSIDE * max(since, grown)

    @property
    def _first(self) -> int:
        return max(1, self.warm_up)

    def _round(self, n: float) -> int:
        """How many times to build have come, counted from ``warm_up`` rows, where it is 0."""
        doublings = math.floor(math.log2(n / self._first))
        halves = -max(0, math.floor(math.log2(self._first / DOUBLING)))
        return doublings if doublings >= halves else halves + math.floor((doublings - halves) / 2)


def _check_past(past: Any) -> None:
    if past is None or callable(past):
        return
    try:
        check_count("past", past)
    except TypeError:
        raise TypeError(
            f"past={past!r} must be None, a number of rows to keep, or a function that returns the "
            "rows learned so far as (X, y) or (X, y, sample_weight)."
        ) from None
    if past > MOST_ROWS:
        raise ValueError(f"past={past!r} is more than the {MOST_ROWS} rows that can be kept.")
