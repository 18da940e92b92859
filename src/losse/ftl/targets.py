r"""Targets as a leader learns them: as they are given, or centred.

Ridge regression pulls predictions towards zero, so a constant that is added to all targets has to
be learned, against the penalty. Centred targets have theirs pulled towards the mean of all rows so
far, :math:`\bar y`. No row is centred for that. Beside the targets, the leader learns one more
output that is always one, with the weights :math:`w_1`. The fit is linear in the targets, so that
of :math:`y - \bar y` has the weights :math:`W - w_1 \bar y^T`, and predictions are

.. math:: \bar y + (W - w_1 \bar y^T)^T \phi = W^T \phi + \bar y \, (1 - w_1^T \phi).

All of this is sums over rows: merging, unlearning and discounts stay exact. So that no digits are
lost far from zero, the sums are over :math:`(y - shift) / scale`, with units taken from the first
rows. They stay as they are; other units would give the same predictions, but for rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from losse._kernels.simd import padded
from losse.ftl.kept_rows import Rows
from losse.ftl.memories.base import Memory
from losse.ftl.settings import Settings
from losse.scaling import SMALLEST_SPREAD
from losse.storage.state import State, StateReader
from losse.typing import Array


class Change(NamedTuple):
    """Change of units: each column times a factor, plus an offset times the column of ones."""

    factor: Array
    offset: Array
    ones: int

    def columns(self, B: Array) -> Array:
        """What is linear in the targets, in the other units."""
        return B * self.factor + B[:, self.ones, None] * self.offset


class Targets:
    """Targets as they are given, which is the paper's way.

    Parameters
    ----------
    n_outputs
        Width of the targets.

    Attributes
    ----------
    centred
        Whether predictions are pulled towards the mean, rather than zero.
    n_columns
        Width of what is learned.
    shift, scale
        Units of the sums.
    """

    centred = False

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs
        self.n_columns = n_outputs
        self.shift = np.zeros(n_outputs)
        self.scale = np.ones(n_outputs)

    def columns(self, Y: Array) -> Array:
        """What is learned of targets, (n, n_columns)."""
        return Y

    def mean(self, memory: Memory) -> Array:
        """What predictions are pulled towards, in the units of the sums, padded like B."""
        return np.zeros(memory.B.shape[1])

    def less_mean(self, columns: Array, mean: Array) -> Array:
        """Weights, or anything that is linear in the targets, for targets less a mean."""
        return columns

    def predictions(self, columns: Array, mean: Array) -> Array:
        """Targets, (n, n_outputs), that the weights times features stand for."""
        return columns[:, : self.n_outputs]

    def squared_errors(self, memory: Memory, W: Array) -> Array:
        """Sum of w (y - prediction)^2 per output, in the units of the sums, padded like B."""
        mean = self.mean(memory)
        W, B = self.less_mean(W, mean), self.less_mean(memory.B, mean)
        squares = np.maximum(memory.squares - memory.total * mean**2, 0.0)
        errors = squares - (W * (2 * B - memory.times(W))).sum(axis=0)
        return np.maximum(errors, 1e-14 * squares)  # what rounding leaves of a perfect fit

    def change_from(self, other: Targets) -> Change | None:
        """How the other's units become these; None if they are the same."""
        return None

    def state(self, memory: Memory) -> State:
        """Values for a checkpoint, with what a memory has for these targets alone."""
        return {}

    def restore(self, saved: StateReader, memory: Memory) -> None:
        """Give a memory what `state` has returned."""


class CentredTargets(Targets):
    """Targets of which predictions are pulled towards the mean: one more column, of ones.

    An output that has not varied yet has a scale of zero. All of its sums are zero, too, so the
    first row that differs sets its scale.

    Parameters
    ----------
    shift, scale
        Units of the sums, of shape (n_outputs,).

    Examples
    --------
    >>> targets = CentredTargets.of(Rows(np.zeros((2, 1)), np.array([[4.0], [8.0]]), np.ones(2)))
    >>> targets.shift, targets.scale
    (array([6.]), array([2.]))
    >>> targets.columns(np.array([[10.0]]))
    array([[2., 1.]])
    """

    centred = True

    def __init__(self, shift: Array, scale: Array) -> None:
        super().__init__(len(shift))
        self.n_columns += 1
        self.shift, self.scale = shift, scale

    @classmethod
    def of(cls, rows: Rows) -> CentredTargets:
        """Units in which some rows have a mean of zero and a standard deviation of one."""
        first = rows.Y[0]
        # From the first row on, so that the mean of a constant is that constant to the last bit.
        shift = first + np.average(rows.Y - first, axis=0, weights=rows.weights)
        return cls(shift, _spread(rows.Y - shift, rows.weights))

    @classmethod
    def read(cls, saved: StateReader, n_outputs: int) -> CentredTargets:
        """The units that `state` has returned."""
        shift, scale = (saved.array(name, (n_outputs,)) for name in ("shift", "scale"))
        if (scale < 0).any():
            saved.refuse("scale is below 0")
        return cls(shift, scale)

    def columns(self, Y: Array) -> Array:
        """What is learned of targets, (n, n_columns): in the units of the sums, then a one."""
        out = np.empty((len(Y), self.n_columns))
        np.subtract(Y, self.shift, out=out[:, :-1])
        out[:, -1] = 1.0
        if len(Y) and not self.scale.all():
            self._settle(_spread(out[:, :-1], np.ones(len(Y))))
        out[:, :-1] *= _inverse(self.scale)
        return out

    def mean(self, memory: Memory) -> Array:
        """Mean of all rows, in the units of the sums, padded like B; zero for the ones."""
        mean = memory.sums / (memory.total or 1.0)
        mean[self.n_outputs] = 0.0
        return mean

    def less_mean(self, columns: Array, mean: Array) -> Array:
        """Weights, or anything that is linear in the targets, for targets less a mean."""
        return np.asarray(columns - columns[:, self.n_outputs, None] * mean)

    def predictions(self, columns: Array, mean: Array) -> Array:
        """Targets, (n, n_outputs), that the weights times features stand for."""
        S = self.n_outputs
        rest = 1.0 - columns[:, S, None]
        return self.shift + self.scale * (columns[:, :S] + rest * mean[:S])

    def change_from(self, other: Targets) -> Change:
        """How the other's units become these."""
        step = other.shift - self.shift
        self._settle(np.where(other.scale > 0, other.scale, abs(step)))
        S, width = self.n_outputs, padded(self.n_columns)
        factor, offset = np.zeros(width), np.zeros(width)
        inverse = _inverse(self.scale)
        factor[:S], offset[:S] = other.scale * inverse, step * inverse
        factor[S] = 1.0
        return Change(factor, offset, ones=S)

    def state(self, memory: Memory) -> State:
        """Values for a checkpoint, with the sums of the targets."""
        sums = memory.sums[: self.n_outputs]
        return {"shift": self.shift, "scale": self.scale, "sums": sums}

    def restore(self, saved: StateReader, memory: Memory) -> None:
        """Give a memory what `state` has returned."""
        memory.sums[: self.n_outputs] = saved.array("sums", (self.n_outputs,))
        memory.sums[self.n_outputs] = memory.total

    def _settle(self, scale: Array) -> None:
        """Give outputs that have not varied yet a scale."""
        self.scale = np.where(self.scale > 0, self.scale, scale)


def new_targets(settings: Settings, rows: Rows) -> Targets:
    """Targets as the settings want them, in units of the first rows."""
    return CentredTargets.of(rows) if settings.centred else Targets(rows.Y.shape[1])


def read_targets(settings: Settings, saved: StateReader, n_outputs: int) -> Targets:
    """The targets whose `state` was saved."""
    return CentredTargets.read(saved, n_outputs) if settings.centred else Targets(n_outputs)


def _inverse(scale: Array) -> Array:
    """One over each scale, or zero where there is none."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)


def _spread(deviations: Array, weights: Array) -> Array:
    """Root mean square of each column, or zero where it is none."""
    largest = np.abs(deviations).max(axis=0)
    unit = np.where(largest > SMALLEST_SPREAD, largest, 1.0)
    shares = np.average((deviations / unit) ** 2, axis=0, weights=weights)
    return np.where(largest > SMALLEST_SPREAD, unit * np.sqrt(shares), 0.0)
