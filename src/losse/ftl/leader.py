"""`Leader`: an encoder that stays as it is, the memories of its features, and the best fit of them.

Here features meet targets. A `Leader` knows neither discounts nor when encoders are built: its rows
have their weights, and building anew means making another `Leader`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from losse._kernels.simd import aligned
from losse.encoders import Encoder
from losse.encoders.features import Features
from losse.ftl.intervals import Errors
from losse.ftl.kept_rows import Rows
from losse.ftl.posterior import Posterior, new_posterior
from losse.ftl.ridge_selector import FIRST_RIDGE, RidgeSelector
from losse.ftl.settings import Settings
from losse.ftl.solvers import new_solver
from losse.ftl.targets import Targets
from losse.storage.state import State, StateReader, nested
from losse.threads import one_thread
from losse.typing import Array
from losse.work import Work, blocks

# Active features encoded at once, and gathered for a build: to free more takes milliseconds.
_CHUNK_ENTRIES, _GATHERED = 1 << 22, 1 << 18
# Rows predicted at once: their products stay in cache, and new memory would be slower than they.
_PREDICTED = 4096
# Operations that take as long as the encoding of a row.
_ENCODING = 5e5
# Rows whose leverages are found together, at least.
_LEFT_OUT = 32
SMALLEST_REST = 1e-6
"""Share that a row leaves to others of what it is predicted, at least; less may be rounding."""


@dataclass(frozen=True)
class Predictor:
    """Predictions of weights for the features of an encoder, and of what the targets stand for."""

    encoder: Encoder
    targets: Targets
    weights: Array
    mean: Array

    @property
    def n_features(self) -> int:
        """Width of the inputs."""
        return self.encoder.n_features_in_

    def predict(self, X: Array) -> Array:
        """Predicted targets, (n, n_outputs)."""
        out = aligned((min(len(X), _PREDICTED), self.weights.shape[1]))
        if len(X) <= _PREDICTED:
            return self._part(X, out)
        found = np.empty((len(X), self.targets.n_outputs))
        for first in range(0, len(X), _PREDICTED):
            rows = slice(first, min(first + _PREDICTED, len(X)))
            found[rows] = self._part(X[rows], out[: rows.stop - first])
        return found

    def _part(self, X: Array, out: Array) -> Array:
        """Predictions of some rows, whose products with the weights are written to ``out``."""
        self.encoder.times(X, self.weights, out, self.targets.n_columns)
        return self.targets.predictions(out, self.mean)


class Leader:
    """The fit of all rows given so far, on the features of a fitted encoder.

    Parameters
    ----------
    settings
        The kind of solver, its ridge and its precision.
    encoder
        A fitted encoder.
    targets
        How the leader learns its targets; see `losse.ftl.targets`.
    ridge
        Ridge to begin with; None for that of the settings.
    """

    def __init__(
        self, settings: Settings, encoder: Encoder, targets: Targets, ridge: float | None = None
    ) -> None:
        auto = settings.ridge == "auto"
        if ridge is None:
            ridge = FIRST_RIDGE if auto else float(settings.ridge)
        self.encoder = encoder
        self.targets = targets
        self._solver = new_solver(
            settings.solver, encoder, targets.n_columns, ridge, settings.dtype
        )
        self._selector = RidgeSelector(targets, settings.window) if auto else None
        self._posterior: Posterior | None = None
        self.spent = 0.0
        """Cost of what the last rows have done for later ones, beside learning."""

    @property
    def total(self) -> float:
        """Sum of the weights of all rows."""
        return self._solver.memory.total

    @property
    def ridge(self) -> float:
        """The ridge in use."""
        return self._solver.ridge

    @property
    def penalty(self) -> float:
        """Lambda: the ridge times the total."""
        return self._solver.penalty

    @property
    def few(self) -> bool:
        """Whether rows are so few that the solver has them all."""
        return self._solver.samples is not None

    @property
    def weights(self) -> Array:
        """W, (D, n_outputs), of which predictions are W^T phi + intercept: a copy."""
        targets, solver = self.targets, self._solver
        W = targets.less_mean(solver.weights, targets.mean(solver.memory))
        return targets.scale * W[:, : targets.n_outputs]

    @property
    def intercept(self) -> Array:
        """What is added to W^T phi, (n_outputs,): the mean of centred targets, or zero."""
        targets = self.targets
        mean = targets.mean(self._solver.memory)[: targets.n_outputs]
        return np.asarray(targets.shift + targets.scale * mean)

    @property
    def rows_at_once(self) -> int:
        """Rows whose features fit in little memory."""
        return max(1, _CHUNK_ENTRIES // self.encoder.n_active)

    def predict(self, X: Array) -> Array:
        """Predicted targets, (n, n_outputs)."""
        mean = self.targets.mean(self._solver.memory)
        return Predictor(self.encoder, self.targets, self._solver.weights, mean).predict(X)

    def frozen(self) -> Predictor:
        """What predicts as this leader does now, and stays as it is."""
        mean, W = self.targets.mean(self._solver.memory), self._solver.weights
        frozen = aligned(W.shape)
        frozen[:] = W
        return Predictor(self.encoder, copy(self.targets), frozen, mean)

    def uncertainty(self, X: Array, unit: float, discount: float) -> tuple[Array, Array, Array]:
        """Predicted targets, leverages of rows and noise: variances are noise (1 + leverage).

        ``unit`` is the weight that counts as one row.
        """
        if self.total == 0.0:  # all was unlearned
            return self.predict(X), np.zeros(len(X)), np.full(self.targets.n_outputs, np.inf)
        with self._threads(len(X)):
            posterior = self._posterior
            if posterior is None or not posterior.serves:
                self._posterior = posterior = None  # room for the next
                posterior = new_posterior(self.encoder, self._solver, self.targets)
                self._posterior = posterior
            return self._uncertainty(posterior, X, unit, discount)

    def _uncertainty(
        self, posterior: Posterior, X: Array, unit: float, discount: float
    ) -> tuple[Array, Array, Array]:
        step = self.rows_at_once
        parts = (X[first : first + step] for first in range(0, len(X), step))
        try:
            found = [posterior.uncertainty(part, unit, discount) for part in parts]
        except np.linalg.LinAlgError:  # rounding: what it has kept cannot follow
            self._posterior = None
            return self.uncertainty(X, unit, discount)
        except BaseException:
            self._posterior = None  # it may have followed only some rows
            raise
        outputs, leverages, noise = zip(*found, strict=True)
        mean = self.targets.mean(self._solver.memory)
        predictions = self.targets.predictions(np.concatenate(outputs), mean)
        return predictions, np.concatenate(leverages), noise[-1]

    def _threads(self, n_rows: int) -> one_thread:
        return one_thread(min(n_rows, self.encoder.dimension))

    def squared_errors(self) -> Array:
        """Sum of w (y - prediction)^2 of all rows, per output."""
        targets, solver = self.targets, self._solver
        errors = targets.squared_errors(solver.memory, solver.weights)
        return targets.scale**2 * errors[: targets.n_outputs]

    def certificate(self) -> float:
        """Bound on the objective over the smallest possible one, less one."""
        return self._solver.certificate()

    def learn(self, rows: Rows, spread: Callable[[], Array]) -> Array:
        """Take rows in; ``spread`` returns the variance of the targets so far.

        Returns the leverages that the rows had before, zero where the solver does not say.
        """
        with self._threads(len(rows)):
            if len(rows) <= self.rows_at_once:
                return self._learn_part(rows, spread)
            parts = rows.parts(self.rows_at_once)
            return np.concatenate([self._learn_part(part, spread) for part in parts])

    def building(self, rows: Rows, tested: int) -> Work[None]:
        """Take the first rows in, as work in units; the last ``tested`` judge ridges.

        `gathering` and `settling` are to follow.
        """
        n = len(rows) - tested
        step = max(1, _GATHERED // self.encoder.n_active)
        for part in rows[:n].parts(step):
            yield from self._gathering(part)
        if self._selector is not None:
            if tested:
                yield from self._solver.following()
            yield from self._selector.opening(self._solver, n, tested)
        for part in rows[n:].parts(step):
            yield from self._gathering(part, self._selector)

    def gathering(self, rows: Rows) -> Work[None]:
        """Take more rows in, as work in units."""
        if self._selector is not None:
            self._selector.pass_over(len(rows))
        yield from self._gathering(rows)

    def catching_up(self, rows: Rows) -> Work[None]:
        """What `learn` does for many rows, as work in units; they judge no ridges."""
        if self._selector is not None:
            self._selector.pass_over(len(rows))
        features = yield from self._encoding(rows)
        yield from self._solver.catching_up(features, self._columns(rows), rows.weights)

    def settling(self, spread: Callable[[], Array]) -> Work[None]:
        """Let the weights follow all rows that were gathered, with the best ridge."""
        if self._selector is not None and self._selector.rows_left <= 0:
            yield from self._selector.reviewing(self._solver, spread)
        else:
            yield from self._solver.following()

    def _gathering(self, rows: Rows, judged: RidgeSelector | None = None) -> Work[None]:
        features = yield from self._encoding(rows)
        Y = self._columns(rows)
        if judged is not None:
            cost = 10.0 * self.encoder.n_active * Y.shape[1]
            for part in blocks(len(rows), cost):
                judged.score(features[part], Y[part], rows.weights[part])
                yield (part.stop - part.start) * cost
        yield from self._solver.gathering(features, Y, rows.weights)

    def left_out(self, rows: Rows) -> Work[Errors | None]:
        """Errors for rows that were learned, as if each had been left out; None if not known.

        The rows weigh what they do in the memories, where a new row weighs one. In closed form: an
        error is e / (1 - w h) without the row, and its leverage h / (1 - w h).
        """
        if len(rows) == 0:
            return None
        errors, leverages = np.empty(rows.Y.shape), np.empty(len(rows))
        for part in blocks(len(rows), self._left_out_cost, _LEFT_OUT):
            features = self.encoder.encode(rows.X[part])
            known = self._solver.leverages(features)
            if known is None:
                return None
            rest = 1.0 - rows.weights[part] * known
            small = rest < SMALLEST_REST
            if small.any():
                samples = self._solver.samples
                rest[small] = SMALLEST_REST if samples is None else samples.rests(features)[small]
            out = aligned((len(features), self._solver.weights.shape[1]))
            features.times(self._solver.weights, out)
            predictions = self.targets.predictions(out, self.targets.mean(self._solver.memory))
            errors[part] = (rows.Y[part] - predictions) / rest[:, None]
            leverages[part] = known / rest
            yield (part.stop - part.start) * self._left_out_cost
        return Errors(errors, leverages, rows.weights / rows.weights.mean(), self.total)

    @property
    def _left_out_cost(self) -> float:
        """Of a row: its encoding and leverage, and a share in a few products with an inverse."""
        active = self.encoder.n_active
        return _ENCODING + 10.0 * active**2 + 60.0 / _LEFT_OUT * active * self.encoder.dimension

    @property
    def row_cost(self) -> float:
        """Operations for learning one of several rows, about."""
        return self._solver.row_cost

    def _encoding(self, rows: Rows) -> Work[Features]:
        features = self.encoder.no_features().room(len(rows))
        for part in blocks(len(rows), _ENCODING):
            features.put(part.start, self.encoder.encode(rows.X[part]))
            yield (part.stop - part.start) * _ENCODING
        return features

    def _learn_part(self, rows: Rows, spread: Callable[[], Array]) -> Array:
        """Take rows in up to each review of the ridge."""
        selector, first = self._selector, 0
        leverages, self.spent = np.zeros(len(rows)), 0.0
        while first < len(rows):
            last = len(rows)
            if selector is not None:
                last = int(min(last, first + selector.most_rows))
            known = self._follow(rows[first:last] if last - first < len(rows) else rows)
            if known is not None:
                leverages[first:last] = known
            self.spent += self._solver.spent
            if selector is not None:
                self.spent += selector.review(self._solver, spread)
            first = last
        return leverages

    def _follow(self, rows: Rows) -> Array | None:
        features, Y = self.encoder.encode(rows.X), self._columns(rows)
        if self._selector is not None:
            self._selector.score(features, Y, rows.weights)
        try:
            leverages = self._solver.learn(features, Y, rows.weights)
        except BaseException:
            self._solver.refresh()  # what was derived from the memories may be half made
            self._posterior = None
            raise
        if self._posterior is not None:
            self._posterior.learned(features, rows.weights)
        return leverages

    def unlearn(self, rows: Rows, *, everything: bool) -> None:
        """Take rows out: all of them, or none and raise `NotLearnedError`.

        ``everything`` says that no other row was learned.
        """
        Y = self._columns(rows)
        features = self.encoder.encode(rows.X)
        self._solver.unlearn(features, Y, rows.weights, everything=everything)
        self._changed()

    def _columns(self, rows: Rows) -> Array:
        """What the solver learns of targets, with padded rows."""
        return self._solver.memory.padded(self.targets.columns(rows.Y))

    def absorb(self, other: Leader, factor: float) -> None:
        """Add the memories of a leader of the same features, their weights times ``factor``.

        The weights follow with `solve`.
        """
        change = self.targets.change_from(other.targets)
        self._solver.absorb(other._solver, factor, change)
        self._changed()

    def solve(self) -> None:
        """Make the weights the best fit of the memories as they are now."""
        self._solver.solve()

    def rescale(self, factor: float) -> None:
        """Multiply all weights of rows by a factor."""
        self._solver.rescale(factor)
        self._posterior = None
        if self._selector is not None:
            self._selector.rescale()

    def _changed(self) -> None:
        self._posterior = None
        if self._selector is not None:
            self._selector.stop()

    def state(self) -> State:
        """Values for a checkpoint, but for the encoder's."""
        own = {"ridge": self.ridge, "spent": self.spent} | nested(
            "targets", self.targets.state(self._solver.memory)
        )
        own |= nested("solver", self._solver.state())
        return own if self._selector is None else own | nested("contest", self._selector.state())

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self._solver.restore(saved.part("solver"))
        self.targets.restore(saved.part("targets"), self._solver.memory)
        self.spent = saved.number("spent") if saved.has("spent") else 0.0
        if self._selector is not None:
            self._selector.restore(saved.part("contest"), self._solver)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_posterior": None}
