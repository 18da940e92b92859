"""`NamedRegression`: a learner of features that have names, and come and go."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from losse.checks import check_count
from losse.encoders import LosseEncoder
from losse.encoders.base import truncated_normal
from losse.ftl.kept_rows import Rows
from losse.ftl.learner import Learner
from losse.ftl.settings import Settings
from losse.locking import Guarded
from losse.scaling import LIMIT, is_constant
from losse.typing import Array

GRID_DIM = 2
MIXED = 3
"""Features that an axis of a grid mixes, on average."""
WATCHED = 32
"""Values of a late feature that are seen before it counts: they give its mean and spread."""


class Sample(NamedTuple):
    """One step of a stream: checked, of positive weight, and not shared with the caller."""

    x: dict[Hashable, float]
    y: Array
    weight: float


class NamedRegression(Guarded):
    """A `Learner` whose columns are found by name.

    Input scaling and the mean of the targets are learned from the first ``warm_up`` samples. These
    are kept meanwhile, and the model is made anew from all of them when they are 1, 2, 4, 8 and
    so on, so it predicts from the first sample on and loses none. At ``warm_up`` the scaling is
    frozen and the samples are dropped. A feature that a sample lacks counts as its mean; one that
    first appears later is ignored until it has shown `WATCHED` values.

    >>> model = NamedRegression(LosseEncoder(10, 5), warm_up=100, ridge=1e-3)
    >>> for i in range(300):
    ...     x = {"t": np.sin(i), "late": 1.0} if i > 200 else {"t": np.sin(i)}
    ...     model.learn(Sample(x, np.array([x["t"] + 5]), 1.0))
    >>> sorted(model.columns), model.predict([{"t": 0.5}, {}]).round(1).tolist()
    (['late', 't'], [[5.5], [5.0]])
    """

    def __init__(self, encoder: LosseEncoder, warm_up: int, **parameters: Any) -> None:
        """``encoder`` gives the grids and the seed, ``parameters`` are its other settings."""
        check_count("warm_up", warm_up)
        Settings(encoder, **parameters).check()
        encoder.check_parameters()
        self._grids = encoder
        self._parameters = parameters
        self._warm_up = warm_up
        self._kept: list[Sample] | None = []
        self._watched: dict[Hashable, list[float]] = {}
        self.columns: dict[Hashable, int] = {}

    def learn(self, sample: Sample) -> None:
        """Take one sample in."""
        if self._kept is None:
            self._watch(sample.x)
        else:
            self._kept.append(sample)
            n = len(self._kept)
            if n & (n - 1) == 0 or n == self._warm_up:
                self._build(self._kept)
                if n == self._warm_up:
                    self._kept = None
                return
        target = (sample.y - self._mean)[None]
        weight = np.array([sample.weight])
        self._model.learn(Rows(self._rows([sample.x]), target, weight))

    def predict(self, xs: Sequence[Mapping[Hashable, float]]) -> Array:
        """Targets of some inputs, one row each; something must have been learned."""
        return self._model.predict(self._rows(xs)) + self._mean

    def _rows(self, xs: Sequence[Mapping[Hashable, float]]) -> Array:
        rows = np.tile(self._centre, (len(xs), 1))
        for row, x in zip(rows, xs, strict=True):
            for name, value in x.items():
                column = self.columns.get(name)
                if column is not None:
                    row[column] = value
        return rows

    def _build(self, samples: Sequence[Sample]) -> None:
        """Learn the scaling and the model anew."""
        # In the order of names, not of arrival, so that even rounding is the same. A regression
        # needs an input: without any feature, one that nothing ever sets.
        names = sorted({name for sample in samples for name in sample.x}, key=repr) or [None]
        X = np.array([[sample.x.get(name, np.nan) for name in names] for sample in samples])
        Y = np.array([sample.y for sample in samples])
        weights = np.array([sample.weight for sample in samples])
        self._centre, spread = _centre_and_spread(X, weights)
        self._mean = np.average(Y, axis=0, weights=weights)
        self.columns = {name: column for column, name in enumerate(names)}
        # What an axis mixes is frozen too, else late features would move all others.
        self._n_features = len(names)

        encoder = LosseEncoder(**self._grids.get_params())
        encoder.scaling = _bounds(self._centre, spread)
        encoder.fit(self._centre[None])
        encoder.projection_ = np.array([self._directions(name) for name in names])
        rows = Rows(np.where(np.isnan(X), self._centre, X), Y - self._mean, weights)
        self._model = Learner(Settings(encoder, **self._parameters), rows)

    def _watch(self, x: Mapping[Hashable, float]) -> None:
        """Let features that appeared late take part once their scale is known."""
        for name in sorted(x.keys() - self.columns.keys(), key=repr):
            values = self._watched.setdefault(name, [])
            values.append(x[name])
            if len(values) < WATCHED:
                continue
            centre, spread = _centre_and_spread(np.array(values)[:, None], np.ones(WATCHED))
            self._model.add_inputs(self._directions(name)[None], _bounds(centre, spread))
            self._centre = np.append(self._centre, centre)
            self.columns[name] = len(self.columns)
            del self._watched[name]

    def _directions(self, name: Hashable) -> Array:
        """The feature's row of the projection: a function of the seed and its name.

        An axis takes a feature in with probability `MIXED` / n_features. Axes that mix few features
        follow most targets better than the paper's, which mix all.
        """
        if isinstance(name, np.generic):  # as equal as a key, but of another representation
            name = name.item()
        key = f"{self._grids.seed}:{name!r}".encode()
        digest = hashlib.blake2b(key, digest_size=16).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        directions = truncated_normal(rng, (self._grids.n_grids, GRID_DIM))
        share = min(1.0, MIXED / self._n_features)
        taken = rng.uniform(size=directions.shape) < share
        return np.where(taken, directions, 0.0) / np.sqrt(share * self._n_features)


def _centre_and_spread(X: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column's values; NaN is none."""
    seen = ~np.isnan(X)
    total = weights @ seen
    total = np.where(total > 0, total, 1.0)
    centre = weights @ np.where(seen, X, 0.0) / total
    spread = np.sqrt(weights @ np.where(seen, X - centre, 0.0) ** 2 / total)
    constant = is_constant(spread, np.abs(np.where(seen, X, 0.0)).max(axis=0))
    return centre, np.where(constant, np.maximum(1.0, np.abs(centre)), spread)


def _bounds(centre: Array, spread: Array) -> tuple[Array, Array]:
    """What the encoder maps to [-3, 3], which clips at three standard deviations."""
    return centre - LIMIT * spread, centre + LIMIT * spread
