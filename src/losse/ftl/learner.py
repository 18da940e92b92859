"""`Learner`: everything that follow-the-leader regression knows, with the verbs that change it.

A learner owns a `Leader` (the encoder in use, its memories and weights), the rows that are kept
until the encoder is final, the discount and the prequential error. Rows that come are

1. weighed by the discount,
2. predicted, for the prequential error,
3. encoded, and taken into the memories (`Leader`, `losse.ftl.solvers`),
4. kept, as long as the encoder is to be built anew.

When a build is due, another leader is made from all rows, little by little (`losse.ftl.build`), and
takes the place of this one.
Inputs are checked by whoever holds the learner: `losse.FTLRegressor` or a world model.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from losse.encoders import Encoder
from losse.encoders import registry as encoders
from losse.ftl.build import FIRST, Build, fits_targets, payment
from losse.ftl.discounting import Discounting
from losse.ftl.intervals import Errors, Intervals
from losse.ftl.kept_rows import KeptRows, Rows
from losse.ftl.leader import Leader, Predictor
from losse.ftl.memories import memory_shape
from losse.ftl.prequential import Curve, Prequential
from losse.ftl.settings import Settings, Source
from losse.ftl.targets import new_targets, read_targets
from losse.interrupts import deferred_interrupts
from losse.storage.archive import Archive, archive_bytes
from losse.storage.state import State, StateReader, nested, split
from losse.typing import Array
from losse.work import finished

_MOST_OUTPUTS = 1 << 20
OTHER_RIDGE = 2.0
"""A penalty that changes by such a factor makes other errors."""
LEAST_SHARE = 0.3
"""Share of its payment that a build has at least, whatever the last rows have spent on others."""


class Learner:
    """Follow-the-leader regression of rows that are checked already.

    Parameters
    ----------
    settings
        What to learn with, checked.
    rows
        The first rows, with positive weights.

    Attributes
    ----------
    n_samples
        Rows learned.
    n_features, n_outputs
        Widths of inputs and targets.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import LosseEncoder
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> rows = Rows(X, np.sin(X), np.ones(500))
    >>> learner = Learner(Settings(LosseEncoder(scaling=(-3, 3))), rows[:400])
    >>> learner.learn(rows[400:])
    >>> bool(np.abs(learner.predict(X) - np.sin(X)).max() < 0.05), learner.n_samples
    (True, 500)
    """

    _leader: Leader
    _kept: KeptRows | None

    def __init__(self, settings: Settings, rows: Rows) -> None:
        self._begin(settings, rows.X.shape[1], rows.Y.shape[1])
        if settings.schedule.repeats:
            settings.encoder.check_parameters()
            self._kept = KeptRows(self.n_features, self.n_outputs)
            if settings.schedule.keeps_rows(len(rows)):
                rows = rows.copy()
            aged = self._discounting.aged(rows)
            before = np.tile(new_targets(settings, rows).shift, (len(rows), 1))
            self._prequential.add(before, rows.Y, rows.weights, aged.weights)
            self._change_to(Build(settings, aged, len(rows), self._prequential.spread))
        else:
            encoder = settings.fitted_encoder(rows)
            self._leader = Leader(settings, encoder, new_targets(settings, rows))
            self._learn(rows)
            if settings.discount == 1.0:
                self._intervals.take_over(finished(self._leader.left_out(rows[-FIRST:])))

    def _begin(self, settings: Settings, n_features: int, n_outputs: int) -> None:
        """Become a learner of nothing, whose leader is still to be made."""
        self.settings = settings
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.n_samples = 0
        self._built = 0  # rows from which the encoder was built
        self._discounting = Discounting(settings.discount)
        self._prequential = Prequential(n_outputs)
        self._intervals = Intervals(n_outputs)
        self._kept = None
        self._build: Build | None = None
        self._since = 0  # rows since the encoder took over
        self._outside = np.zeros(n_features, dtype=np.int64)  # of these, beyond its range

    @property
    def encoder(self) -> Encoder:
        """The encoder in use."""
        return self._leader.encoder

    @property
    def ridge(self) -> float:
        """The ridge in use."""
        return self._leader.ridge

    @property
    def weights(self) -> Array:
        """W, (D, n_outputs): a copy."""
        return self._leader.weights

    @property
    def intercept(self) -> Array:
        """What is added to W^T phi, (n_outputs,)."""
        return self._leader.intercept

    @property
    def final(self) -> bool:
        """Whether the encoder stays as it is, so that no rows are kept."""
        return self._kept is None

    @property
    def unit(self) -> float:
        """Weight of the latest row in the memories."""
        return self._discounting.unit

    @property
    def prequential(self) -> Curve:
        """Test-then-train errors at growing numbers of rows."""
        return self._prequential.curve()

    @property
    def prequential_error(self) -> float:
        """Squared test-then-train error over the targets' variance, of all calls but the first."""
        return self._prequential.nmse

    @property
    def regret(self) -> Array:
        """Squared errors before learning, less those of the present weights, per output."""
        return (self._prequential.loss - self._leader.squared_errors()) / self.unit

    @property
    def certificate(self) -> float:
        """Bound on the objective over the smallest possible one, less one."""
        return self._leader.certificate()

    def predict(self, X: Array) -> Array:
        """Predicted targets, (n, n_outputs)."""
        return self._leader.predict(X)

    def frozen(self) -> Predictor:
        """What predicts as this learner does now, and stays as it is."""
        return self._leader.frozen()

    def predict_std(self, X: Array) -> tuple[Array, Array]:
        """Predicted targets and their standard deviations, (n, n_outputs) each."""
        discount = self.settings.discount
        mean, leverages, noise = self._leader.uncertainty(X, self.unit, discount)
        return mean, np.sqrt((1.0 + leverages)[:, None] * noise)

    def predict_interval(self, X: Array, coverage: float) -> tuple[Array, Array]:
        """Bounds between which a share of targets are expected, (n, n_outputs) each."""
        discount, total = self.settings.discount, self._leader.total
        mean, leverages, noise = self._leader.uncertainty(X, self.unit, discount)
        rows = total / self.unit
        half = self._intervals.half_widths(coverage, leverages, noise, rows, discount)
        return mean - half, mean + half

    def use_past(self, past: int | Source | None) -> None:
        """Take rows for builds to come from another source; see `Settings`."""
        if past is not self.settings.past:
            self.settings = replace(self.settings, past=past)

    def learn(self, rows: Rows, past: Source | None = None) -> None:
        """Learn more rows, which have positive weights.

        ``past`` is a source for this time, if the settings have none, of all rows so far, these
        included. Where it returns None, a build is put off.
        """
        settings = self.settings
        if settings.past is None and past is not None:
            settings = replace(settings, past=past)
        paid = payment(rows, self.n_samples + len(rows))
        if self._build is not None:
            self._advance(self._build, max(LEAST_SHARE * paid, paid - self._leader.spent))
        due = self._build is None and self._is_due(settings, len(rows))
        if due and self._kept is not None:
            self._build_with(rows, paid)
            return
        found = settings.past_rows(self.n_features, self.n_outputs) if due else None
        with deferred_interrupts():
            self._learn(rows)
        if found is not None:
            weights = found.weights * (self._leader.total / self.unit / found.weights.sum())
            spread, scale = self._prequential.spread, 1.0 / self.unit
            found = found.weighing(weights)
            self._advance(Build(self.settings, found, self.n_samples, spread, scale), paid)

    def _build_with(self, rows: Rows, paid: float) -> None:
        """Begin a build with more rows, which it may learn before they are learned here."""
        aged = self._discounting.aged(rows)
        held = self._discounting.faded(self._kept_rows, len(rows)) + aged
        prequential = self._prequential_at_unit_one(len(rows))
        prequential.add(self.predict(rows.X), rows.Y, rows.weights, aged.weights)
        spread, urgent = prequential.spread, self._has_left_range
        build = Build(self.settings, held, len(held), spread, urgent=urgent)
        leader = build.advance(paid)
        with deferred_interrupts():
            if leader is not None:
                self._discounting.unit, self.n_samples = 1.0, len(held)
                self._prequential = prequential
                self._take_over(build, leader)
                return
            self._learn(rows)
            build.scale = 1.0 / self.unit
            self._build = build

    def _learn(self, rows: Rows) -> None:
        """Learn rows with the encoder in use."""
        step = int(min(self._leader.rows_at_once, max(1, self._discounting.most_rows)))
        for part in rows.parts(step):
            if self._discounting.overdue:
                self._rescale(1.0 / self.unit)
            grown = self._discounting.grown(part.weights)
            predictions = self.predict(part.X)
            self._prequential.add(predictions, part.Y, part.weights, grown)
            total, penalty = self._leader.total, self._leader.penalty
            leverages = self._take_in(part.weighing(grown))
            if total:
                errors, unit = part.Y - predictions, self.unit
                self._intervals.add(Errors(errors, unit * leverages, part.weights, total / unit))
                self._judge_again(penalty)

    def _judge_again(self, penalty: float) -> None:
        """Let intervals know errors of the present ridge, if it is another than it was.

        Where rows are few. Later the ridge changes less, and errors of the new one are soon many.
        """
        leader = self._leader
        if self._kept is None or not leader.few or self.settings.discount < 1.0:
            return
        if penalty / OTHER_RIDGE < leader.penalty < OTHER_RIDGE * penalty:
            return
        seen = self._built if fits_targets(self.settings.encoder, self._built) else 0
        latest = self._kept.rows[max(seen, len(self._kept) - FIRST) :]
        if (errors := finished(leader.left_out(latest))) is not None:
            self._intervals.begin_anew(errors)

    def _take_in(self, rows: Rows) -> Array:
        """Learn rows with the weights that they have in the memories.

        What is interrupted once it is in the memories is not lost. Returns leverages before.
        """
        leader = self._leader
        before = leader.total
        learned = False
        try:
            leverages = leader.learn(rows, self._spread)
            learned = True
        finally:
            # A weight may be too small to change the total.
            if learned or leader.total != before:
                self.n_samples += len(rows)
                if self._kept is not None:
                    self._kept.add(rows)
                    self._since += len(rows)
                    self._outside += self.encoder.outside(rows.X)
                if self._build is not None:
                    self._build.add(rows)
        return leverages

    def _spread(self) -> Array:
        return self._prequential.spread

    def _is_due(self, settings: Settings, more: int) -> bool:
        """Whether the encoder is to be built when some more rows come."""
        if self._kept is None and not callable(settings.past):
            return False
        return self._has_left_range or settings.schedule.is_due(self._built, self.n_samples + more)

    @property
    def _has_left_range(self) -> bool:
        """Whether inputs have left the range in which they were when the encoder was built."""
        n, built, outside = self.n_samples, self._built, int(self._outside.max())
        has_left = self.settings.schedule.has_left
        return self._kept is not None and has_left(n, built, self._since, outside)

    def _advance(self, build: Build, paid: float) -> None:
        """Work at a build, and change to its leader when it is done."""
        leader = build.advance(paid)
        with deferred_interrupts():
            if leader is None:
                self._build = build
                return
            self._prequential.loss *= build.scale
            self._discounting.unit *= build.scale
            self._take_over(build, leader)

    def _change_to(self, build: Build) -> None:
        """Complete a build of all rows, and change to its leader."""
        leader = build.advance(float("inf"))
        assert leader is not None
        with deferred_interrupts():
            self.n_samples, self._discounting.unit = build.n_samples, 1.0
            self._take_over(build, leader)

    def _take_over(self, build: Build, leader: Leader) -> None:
        """Change to the leader of a build; the units of weights are its own already."""
        self._leader, self._build, self._built = leader, None, build.n_samples
        self._since, self._outside = 0, np.zeros_like(self._outside)
        self._intervals.take_over(build.errors)
        if self._kept is not None:
            self._kept = None
            if self.settings.schedule.keeps_rows(build.n_samples):
                self._kept = KeptRows(self.n_features, self.n_outputs)
                self._kept.hold(build.rows)
                self._kept.hold(build.later.rows)

    @property
    def _kept_rows(self) -> Rows:
        assert self._kept is not None
        return self._kept.rows

    def _prequential_at_unit_one(self, later: int) -> Prequential:
        """A copy of the prequential error, weighed as some rows later at a unit of one."""
        prequential = deepcopy(self._prequential)
        prequential.loss *= self.settings.discount**later / self.unit
        return prequential

    def _rescale(self, factor: float) -> None:
        """Change the unit in which rows are weighed."""
        self._leader.rescale(factor)
        self._prequential.loss *= factor
        if self._kept is not None:
            self._kept.scale(factor)
        if self._build is not None:
            self._build.scale /= factor
        self._discounting.unit *= factor

    def add_inputs(
        self, projection: Array, bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None
    ) -> None:
        """Let the encoder see more inputs from here on; see `Encoder.add_inputs`."""
        self.n_features = self.encoder.add_inputs(projection, bounds).n_features_in_
        self._build = None
        self._since, self._outside = 0, np.zeros(self.n_features, dtype=np.int64)

    def unlearn(self, rows: Rows, ages: Array) -> None:
        """Take rows out, which have been learned ``ages`` rows ago: all of them, or none.

        A build in the making has learned them; it begins anew with the next rows.
        """
        weights = rows.weights * self.settings.discount**ages * self.unit
        rows = rows.weighing(weights)
        places = None if self._kept is None else self._kept.places(rows)
        with deferred_interrupts():
            self._leader.unlearn(rows, everything=len(rows) == self.n_samples)
            if self._kept is not None and places is not None:
                self._kept.drop(places)
            self.n_samples -= len(rows)
            self._build = None

    def empty_like(self) -> Learner:
        """A learner with the same settings, encoder and widths that has learned nothing."""
        empty = Learner.__new__(Learner)
        empty._begin(self.settings, self.n_features, self.n_outputs)
        encoder, targets = deepcopy(self.encoder), deepcopy(self._leader.targets)
        empty._leader = Leader(self.settings, encoder, targets, self.ridge)
        if self._kept is None:
            empty._built = self._built
        else:
            empty._kept = KeptRows(self.n_features, self.n_outputs)
        return empty

    def absorb(self, other: Learner) -> None:
        """Add what a mergeable learner has learned; the weights follow with `solve`."""
        loss, factor = other._prequential.loss / other.unit, self.unit / other.unit
        if other._kept is None:
            self._leader.absorb(other._leader, factor)
            self.n_samples += other.n_samples
            self._build = None  # it begins anew
        else:  # it has all its rows: no need for the same features
            rows = other._kept.rows
            self._relearn(rows.weighing(rows.weights * factor))
        self._prequential.loss += loss * self.unit
        self._intervals.absorb(other._intervals)

    def solve(self) -> None:
        """Make the weights the best fit of the memories as they are now."""
        self._leader.solve()

    def _relearn(self, rows: Rows) -> None:
        """Learn rows of another learner, with the weights that they have in these memories."""
        if self._is_due(self.settings, len(rows)) and self._kept is not None:
            theirs = rows.weighing(rows.weights / self.unit)
            held = self._discounting.faded(self._kept.rows, 0) + theirs
            prequential = self._prequential_at_unit_one(0)
            self._change_to(Build(self.settings, held, len(held), prequential.spread))
            self._prequential = prequential
        else:
            self._take_in(rows)

    def require_mergeable(self, other: Learner) -> None:
        """Raise unless the sums of both learners are over the same features and outputs."""
        mine, theirs = self.encoder, other.encoder
        if not other.final:
            if self.n_features != other.n_features:
                raise ValueError(
                    f"other has {other.n_features} input features, but this model "
                    f"{self.n_features}: both must learn from the same inputs."
                )
        elif not self.final:
            raise ValueError(
                f"other.encoder_={theirs!r} is final, but this model still learns its own: merge "
                "the other way round, other.merge(model), or begin this one with "
                "FTLRegressor(encoder=other.encoder_)."
            )
        elif not mine.same_features(theirs):
            raise ValueError(
                f"other.encoder_={theirs!r} is not the same as this model's {mine!r}, or was "
                "fitted on other data: fit one encoder and pass it to every model that is to be "
                "merged, or one model's encoder_ to the others."
            )
        if self.n_outputs != other.n_outputs:
            raise ValueError(
                f"other has {other.n_outputs} output(s), but this model {self.n_outputs}: both "
                "must learn the same targets."
            )
        if other.final and self._leader.targets.centred != other._leader.targets.centred:
            raise ValueError(
                f"other has center={other.settings.center!r} and this model "
                f"center={self.settings.center!r}, so that only one of them is centred: set both "
                "to True or both to False."
            )

    def state(self) -> State:
        """Values for a checkpoint, but for the settings."""
        state: State = {
            "used_encoder": encoders.describe(self.encoder),
            "n_outputs": self.n_outputs,
            "n_samples_seen": self.n_samples,
            "weight": self.unit,
            "built": self._built,
            "holds_rows": self._kept is not None,
            **nested("encoder", self.encoder.state()),
            **self._leader.state(),
            **nested("prequential", self._prequential.state()),
            **nested("intervals", self._intervals.state()),
        }
        if self._kept is not None:
            state |= nested("past", self._kept.state())
            state |= {"since": self._since, "outside": self._outside}
        state["building"] = self._build is not None
        if self._build is not None:
            state |= nested("build", self._build.state())
        return state

    @classmethod
    def read(cls, settings: Settings, saved: StateReader) -> Learner:
        """The learner that `state` has described."""
        encoder = encoders.read(saved, "used_encoder")
        encoder.restore(saved.part("encoder"))
        n_outputs = saved.count("n_outputs", at_most=_MOST_OUTPUTS)
        if n_outputs == 0:
            saved.refuse("n_outputs=0 makes no model")
        # Before anything of that size is allocated.
        saved.require_shape("solver.memory.A", memory_shape(encoder), settings.dtype)
        saved.require_columns("solver.memory.B", encoder.dimension, n_outputs)
        targets = read_targets(settings, saved.part("targets"), n_outputs)
        learner = cls.__new__(cls)
        learner._begin(settings, encoder.n_features_in_, n_outputs)
        learner._leader = Leader(settings, encoder, targets, saved.positive("ridge"))
        learner._leader.restore(saved)
        learner._prequential.restore(saved.part("prequential"))
        if saved.has("intervals.rows"):
            learner._intervals.restore(saved.part("intervals"))
        if saved.flag("holds_rows"):
            learner._kept = KeptRows(encoder.n_features_in_, n_outputs)
            learner._kept.restore(saved.part("past"))
            if saved.has("since"):
                learner._since = saved.count("since")
                saved.array("outside", out=learner._outside)
        if saved.has("building") and saved.flag("building"):
            widths = encoder.n_features_in_, n_outputs
            learner._build = Build.read(settings, saved.part("build"), *widths)
        learner._built = saved.count("built")
        learner.n_samples = saved.count("n_samples_seen")
        learner._discounting.unit = saved.number("weight", at_least=1.0)
        return learner

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as a checkpoint: what can be derived, and what is empty, takes no room."""
        try:
            values, arrays = split(self.state())
        except TypeError:  # an encoder of somebody else, which no checkpoint can describe
            return super().__reduce_ex__(protocol)
        data = archive_bytes(type(self).__name__, 1, values, arrays)
        return _unpickled, (type(self), self.settings, data)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy without the detour of pickling."""
        cls = type(self)
        same = cls.__new__(cls)
        memo[id(self)] = same
        vars(same).update(deepcopy(vars(self), memo))
        return same


def _unpickled(kind: type[Learner], settings: Settings, data: bytes) -> Learner:
    """Learner that was pickled."""
    archive = Archive(BytesIO(data), kind.__name__, newest=1)
    return kind.read(settings, StateReader(archive, "the pickle"))
