"""`Build`: another leader in the making, with an encoder of its own, worked off between rows.

Fitting an encoder and learning all rows anew takes seconds. A build is therefore work in units
(`losse.work`), of which every call that brings rows does its share: so much for each row, never so
long. Meanwhile the model goes on as it is. Rows that come in the meantime are kept, and learned in
the end, before the new leader takes over.

Where a build stands follows from its rows and the number of units done. So this is all that a copy
or a checkpoint holds, and the work is done again when the copy learns its next rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import Encoder
from losse.ftl import folds
from losse.ftl.intervals import Errors
from losse.ftl.kept_rows import KeptRows, Rows
from losse.ftl.leader import Leader
from losse.ftl.settings import Settings
from losse.ftl.targets import new_targets
from losse.storage.state import State, StateReader, nested
from losse.threads import one_thread
from losse.typing import Array
from losse.work import Work

LEAST_ROWS = 100
"""Rows below which targets say too little of directions."""
TESTED, LEAST_TESTED, MOST_TESTED, STRETCH = 8, 64, 1000, 50
"""One in so many rows tests ridges when an encoder is built, if there are as many, up to so many
rows, of which so many follow each other: of the others it learns more than they would tell."""
PER_ROW, NARROW = 1e8, 32
"""Cost that a row pays, a millisecond or two, if it has so many inputs and outputs at most; else in
proportion to these, as builds cost."""
COPIED = 150.0
"""Cost of copying a number to new memory."""
OVERHEAD = 2e6
"""Cost of a unit beside what it says."""
EARLY, HASTE = 3000, 1.1
"""Rows before which an encoder is soon out of date, and how much more a row pays for another then,
and where it is out of date already."""
AT_ONCE, FEW = 4, 64
"""A call that brings one in so many rows pays for the whole build, and one of so few rows."""
MANY, SOME, STEP = 256, 32, 2
"""Rows that came in the meantime and are taken in together: first so many, then at least so many,
and then so few."""
LEFT_OUT, FIRST = 1000, 500
"""Rows whose errors are those of the leader without them, at most; and in a model's first call."""


class Build:
    """The leader of some rows, the last of which weighs one, and of those that `add` brings.

    Parameters
    ----------
    settings
        What to learn with.
    rows
        The rows to begin with.
    n_samples
        Rows that the model has learned when the build begins, these included.
    spread
        Variances of the targets, which say what a difference between ridges is worth.
    scale
        Factor from the weights of rows that `add` brings to those of ``rows``.
    urgent
        Whether the encoder in use is out of date already.
    """

    def __init__(
        self,
        settings: Settings,
        rows: Rows,
        n_samples: int,
        spread: Array,
        scale: float = 1.0,
        *,
        urgent: bool = False,
    ) -> None:
        self.rows = rows
        self.n_samples = n_samples
        self.scale = scale
        self.later = KeptRows(rows.X.shape[1], rows.Y.shape[1])
        self.units = 0
        """Units of work done."""
        self.errors: Errors | None = None
        """Errors of the leader for rows that its encoder has not seen."""
        self._settings = settings
        self._spread = spread
        self._urgent = urgent
        self._credit = 0.0
        self._chunks: list[int] = []  # later rows that were taken in together
        self._work: Work[Leader] | None = None

    def add(self, rows: Rows) -> None:
        """Keep rows that are learned in the meantime."""
        self.later.add(rows.weighing(rows.weights * self.scale))

    def advance(self, payment: float) -> Leader | None:
        """Do as much work as is paid for; return the leader when it has learned all rows."""
        before = self.units, self._credit, self._chunks[:]
        self._credit += payment * HASTE ** (self._urgent + (self.n_samples < EARLY))
        try:
            with one_thread():
                if self._work is None:
                    self._work = self._making()
                    for _ in range(self.units):
                        next(self._work)
                while self._credit > 0:
                    self._credit -= next(self._work) + OVERHEAD
                    self.units += 1
        except StopIteration as end:
            leader: Leader = end.value
            return leader
        except BaseException:
            self._work = None  # to be done again
            self.units, self._credit, self._chunks = before
            raise
        return None

    def _making(self) -> Work[Leader]:
        settings, rows, n = self._settings, self.rows, len(self.rows)
        ridge, tested = None, 0
        copied = COPIED * rows.X.size + COPIED * rows.Y.size
        yield copied  # when they were joined
        if settings.ridge == "auto" and folds.suit(n):
            ridge = yield from folds.best_ridge(rows, settings.centred, self._encoding)
        elif settings.ridge == "auto" and n >= LEAST_TESTED:
            # Rows that the encoder has not seen say which ridge suits it.
            apart = set_apart(n)
            tested = int(np.count_nonzero(apart))
            rows = rows.take(np.argsort(apart, kind="stable"))
            yield copied
        seen = rows[: n - tested]
        encoder = yield from self._encoding(seen)
        leader = Leader(settings, encoder, new_targets(settings, seen), ridge)
        yield from leader.building(rows, tested)
        taken = chunks = 0
        for take_in, least in ((leader.gathering, MANY), (leader.catching_up, SOME)):
            while more := self._chunk(chunks, taken, least):
                yield from take_in(self.later.rows[taken : taken + more])
                taken, chunks = taken + more, chunks + 1
            chunks += 1
            if least == MANY:
                yield from leader.settling(self._variances)
                if settings.discount == 1.0:
                    first = n - tested if fits_targets(settings.encoder, n) else 0
                    unseen = (rows[first:] + self.later.rows[:taken])[-LEFT_OUT:]
                    self.errors = yield from leader.left_out(unseen)
        while len(self.later) - taken >= STEP:
            leader.learn(self.later.rows[taken : taken + STEP], self._variances)
            taken += STEP
            yield STEP * leader.row_cost + leader.spent
        if taken < len(self.later):
            leader.learn(self.later.rows[taken:], self._variances)
        return leader

    def _encoding(self, rows: Rows) -> Work[Encoder]:
        """An encoder for some rows."""
        given = self._settings.encoder
        enough = fits_targets(given, len(rows))
        encoder: Encoder = clone(given) if enough else given.early()
        # The latest rows weigh most under a discount, but memories' units grow without end.
        yield from encoder.freezing(rows.X, rows.Y, rows.weights / rows.weights.max())
        return encoder

    def _chunk(self, k: int, taken: int, least: int) -> int:
        """Rows of the k-th chunk: those that are there, or none if they are too few.

        Whenever the work is done again, as many as the first time.
        """
        if k == len(self._chunks):
            there = min(len(self.later) - taken, MANY)
            self._chunks.append(there if there >= least else 0)
        return self._chunks[k]

    def _variances(self) -> Array:
        return self._spread

    def state(self) -> State:
        """Values for a checkpoint, but for the settings."""
        rows = KeptRows(self.rows.X.shape[1], self.rows.Y.shape[1])
        rows.add(self.rows)
        spread = np.where(np.isinf(self._spread), 0.0, self._spread)
        return {
            "n_samples": self.n_samples, "scale": self.scale, "spread": spread, "units": self.units,
            "urgent": self._urgent, "credit": self._credit,
            "chunks": np.array(self._chunks, dtype=np.int64),
            **nested("rows", rows.state()), **nested("later", self.later.state()),
        }  # fmt: skip

    @classmethod
    def read(cls, settings: Settings, saved: StateReader, n_features: int, n_outputs: int) -> Build:
        """The build that `state` has described."""
        rows = KeptRows(n_features, n_outputs)
        rows.restore(saved.part("rows"))
        spread = saved.array("spread", (n_outputs,))
        spread[spread == 0.0] = np.inf  # outputs that never vary; a file has finite numbers only
        n_samples, scale = saved.count("n_samples"), saved.positive("scale")
        urgent = saved.has("urgent") and saved.flag("urgent")
        build = cls(settings, rows.rows, n_samples, spread, scale, urgent=urgent)
        build.later.restore(saved.part("later"))
        build.units, build._credit = saved.count("units"), saved.number("credit")
        chunks = saved.array("chunks", (saved.length("chunks"),), np.int64)
        if (chunks < 0).any() or chunks.sum() > len(build.later):
            saved.refuse("chunks are not of the rows since the build began")
        build._chunks = chunks.tolist()
        return build

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_work": None}


def fits_targets(encoder: Encoder, n: int) -> bool:
    """Whether an encoder that is built from n rows learns from their targets."""
    return n >= min(LEAST_ROWS, max(1, encoder.warm_up))


def set_apart(n: int) -> npt.NDArray[np.bool_]:
    """Which of n rows test ridges: stretches all over them, since neighbours are alike.

    The latest alone would not do. In a stream that has just come to another region, no row of it
    would be learned, and the largest ridge would seem the best.

    >>> [int(set_apart(n).sum()) for n in (64, 500, 2000, 8000, 32000)]
    [8, 63, 248, 1000, 1000]
    """
    one_in = max(TESTED, n // MOST_TESTED)
    stretch = min(STRETCH, n // LEAST_TESTED)
    return np.arange(n) // stretch % one_in == one_in // 2


def payment(rows: Rows, n_samples: int) -> float:
    """Cost that a call pays which brings the last rows of so many."""
    if AT_ONCE * len(rows) >= n_samples or n_samples < FEW:
        return float("inf")
    width = rows.X.shape[1] + rows.Y.shape[1]
    return PER_ROW * max(1.0, width / NARROW) * len(rows)
