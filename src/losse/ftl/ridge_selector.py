"""`RidgeSelector`: the ridge, chosen by predictions of rows that are not yet learned.

The memories do not depend on the ridge, so a rival's leader can be had at any time for one
solution. From time to time, whenever rows are half as many again, the leaders for a quarter, one
and four times the present penalty are computed. They stay as they are and predict every row that
comes until the next review; then the best of the three takes charge.

What is right or wrong is the penalty, lambda = ridge * n, since it says how large weights are
expected to be. So the winner's penalty is kept, and its ridge falls as rows become more.
"""

from collections.abc import Callable

import numpy as np

from losse._kernels.simd import aligned
from losse.encoders.features import Features
from losse.ftl.solvers.base import Solver
from losse.ftl.solvers.descent import Descent
from losse.ftl.targets import Targets
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import Work

FIRST_RIDGE = 1e-3
"""Ridge of a new model."""
SMALLEST, LARGEST = 1e-9, 1e3
FACTORS = (1.0, 0.25, 4.0)
WIDE = (1.0, 0.1, 10.0, 100.0, 1e3)
"""Factors of the first round."""
FIRST_REVIEW = 64
"""Rows before the first one: of fewer, no ridge is right or wrong."""
SLOW = 4e7
"""Cost of a leader from which on it is made step by step."""
APART = 1
"""Rows between two parts of the work for contestants that take a while to make."""


class RidgeSelector:
    """Frozen leaders for some ridges, and their squared errors per output since.

    Their predictions are compared as ``targets`` makes them, in the units of the memories.
    ``window`` is the number of rows that count, which is finite under a discount.
    """

    def __init__(self, targets: Targets, window: float) -> None:
        self._targets = targets
        self.rows_left = FIRST_REVIEW
        """Rows until the next review."""
        self._window = window
        self._rows = self._begun = 0
        self._ridges = np.zeros(0)
        self._made = 0  # contestants whose weights are there
        self._weights = np.zeros((0, 0))
        self._mean = np.zeros(0)
        self._errors = np.zeros((0, 0))
        self._descent: Descent | None = None  # to the weights of the next contestant

    def score(self, features: Features, Y: Array, weights: Array) -> None:
        """Let the contestants predict rows that are to be learned."""
        self._count(len(features))
        if not (len(self._ridges) and self._complete):
            return
        predictions = aligned((len(Y), self._weights.shape[1]))
        features.times(self._weights, predictions)
        less = (Y - self._mean)[:, None]
        errors = (predictions.reshape(len(Y), len(self._ridges), -1) - less) ** 2
        self._errors += np.tensordot(weights, errors, axes=1)

    @property
    def most_rows(self) -> float:
        """Rows that may be learned at once, since the winner of a round follows its last one."""
        return max(1, self.rows_left) if self._complete else float("inf")

    def pass_over(self, rows: int) -> None:
        """Count rows that are to be learned unseen; contestants in the making wait for others."""
        self._count(rows)
        if not self._complete:
            self.rows_left = max(1, self.rows_left)

    def _count(self, rows: int) -> None:
        self.rows_left -= rows
        self._rows += rows

    def review(self, solver: Solver, spread: Callable[[], Array]) -> float:
        """If it is time, put the winner in charge and begin the next round.

        Where leaders take a while, that is one step for every few rows, when the solver has no
        other work to do. Returns what was spent on it.
        """
        if self.rows_left > 0:
            return 0.0
        slow = solver.leader_cost > SLOW
        steps, spent = max(1, (APART - self.rows_left) // APART), 0.0
        if self._complete:
            ridge = self._winner(solver, spread)
            self._call(solver, ridge)
            if ridge is not None:
                solver.retune(ridge)
                if slow:
                    self.rows_left = APART
                    return solver.part_cost
        while not self._complete:
            if slow and (steps == 0 or solver.busy):
                self.rows_left = APART
                return spent
            self._advance(solver)
            steps -= 1
            spent += solver.part_cost
        self._start(solver)
        return spent

    def reviewing(self, solver: Solver, spread: Callable[[], Array]) -> Work[None]:
        """Put the winner in charge, as work in units; the rows that follow make its rivals."""
        ridge = self._winner(solver, spread)
        yield from solver.retuning(solver.ridge if ridge is None else ridge)
        self._call(solver, ridge)
        self.rows_left = 1

    def opening(self, solver: Solver, rows: int, length: int) -> Work[None]:
        """A first and wide round of some length, after ``rows`` that no contestant is to predict.

        Without any length, the first review comes later.
        """
        self._rows = rows
        self.rows_left = max(1, FIRST_REVIEW - rows)
        if length:
            self._call(solver, None)
            while not self._complete:
                made, descends = self._made, self._descent is not None
                self._advance(solver)
                descends |= self._made == made
                yield solver.part_cost if descends else solver.leader_cost
            self._start(solver)
            self.rows_left = length

    def stop(self) -> None:
        """Forget the contestants, because the memories have lost or gained rows."""
        self._ridges, self._made, self._descent = np.zeros(0), 0, None
        self._weights, self._errors = np.zeros((0, 0)), np.zeros((0, 0))

    def state(self) -> State:
        """Values for a checkpoint."""
        own: State = {"rows_left": self.rows_left, "rows": self._rows, "begun": self._begun}
        own["contestants"] = len(self._ridges)
        if len(self._ridges):
            S = self._targets.n_outputs
            weights = self._weights.reshape(len(self._weights), len(self._ridges), -1)[:, :, :S]
            own |= {"ridges": self._ridges, "weights": weights, "errors": self._errors[:, :S]}
            own["made"], own["descending"] = self._made, self._descent is not None
            if self._descent is not None:
                own |= nested("descent", self._descent.state(self._targets.n_columns))
            if self._targets.centred:
                own["mean"] = self._mean[:S]
        return own

    def restore(self, saved: StateReader, solver: Solver) -> None:
        """Take over what `state` has returned, for the leader that ``solver`` follows."""
        self.rows_left = max(1, saved.count("rows_left"))
        self._rows = saved.count("rows")
        self._begun = saved.count("begun")
        if count := saved.count("contestants", at_most=len(WIDE)):
            (D, S), n_outputs = solver.weights.shape, self._targets.n_outputs
            self._ridges = saved.array("ridges", (count,))
            self._made = saved.count("made", at_most=count) if saved.has("made") else count
            self._weights, self._errors = aligned((D, S * count)), np.zeros((count, S))
            if saved.has_shape("weights", (D, S * count)):  # of version 0.1, padded
                saved.array("weights", out=self._weights)
            else:
                weights = self._weights.reshape(D, count, S)
                saved.columns("weights", out=weights, width=n_outputs)
            saved.columns("errors", out=self._errors, width=n_outputs)
            self._mean = np.zeros(S)
            if self._targets.centred:
                saved.columns("mean", out=self._mean, width=n_outputs)
            if saved.has("descending") and saved.flag("descending"):
                self._descent = solver.read_descent(saved.part("descent"))

    @property
    def _complete(self) -> bool:
        """Whether all contestants of a round are made, or none is called."""
        return self._made == len(self._ridges)

    def _winner(self, solver: Solver, spread: Callable[[], Array]) -> float | None:
        """Ridge of the winner, if there was a round."""
        if not len(self._ridges):
            return None
        scale = self._targets.scale
        shares = (scale**2 * self._errors[:, : len(scale)] / spread()).sum(axis=1)
        growth = min(self._rows, self._window) / min(self._begun, self._window)
        winner = float(self._ridges[np.argmin(shares)]) / growth
        return min(max(winner, SMALLEST, solver.smallest_ridge), LARGEST)

    def _call(self, solver: Solver, ridge: float | None) -> None:
        """Call the contestants of another round, which are still to be made.

        ``ridge`` is that in charge, which the solver may yet have to follow; None for its own.
        """
        factors = FACTORS if self._begun else WIDE
        self._ridges = (solver.ridge if ridge is None else ridge) * np.array(factors)
        D, S = solver.weights.shape
        self._weights = aligned((D, S * len(factors)))
        self._errors = np.zeros((len(factors), S))
        self._mean = self._targets.mean(solver.memory)
        self._made, self._descent = 0, None

    def _advance(self, solver: Solver) -> None:
        """Do a step towards another contestant; the one that is at hand comes last."""
        k = (self._made + 1) % len(self._ridges)
        ridge = float(self._ridges[k])
        if k == 0 and not solver.approximate and ridge == solver.ridge:
            self._take(k, solver.weights)
            return
        self._descent = self._descent or solver.descent_to(ridge)
        if self._descent is None:
            self._take(k, solver.leader(ridge))
            return
        solver.approach(self._descent)
        if not self._descent.goes_on:
            self._take(k, self._descent.W)
            self._descent = None

    def _take(self, k: int, W: Array) -> None:
        """Let W be the weights of a contestant."""
        S = W.shape[1]
        self._weights[:, k * S : (k + 1) * S] = self._targets.less_mean(W, self._mean)
        self._made += 1

    def rescale(self) -> None:
        """Begin a contestant anew that is in the making, because rows weigh in other units."""
        self._descent = None

    def _start(self, solver: Solver) -> None:
        """Begin a round whose contestants are made."""
        self._begun = self._rows
        # So many rows that leaders take about as long as learning does, at most.
        least = FIRST_REVIEW // 2 if solver.samples is not None else len(solver.weights) // 4
        self.rows_left = max(least, int(min(self._rows, self._window) / 2))
