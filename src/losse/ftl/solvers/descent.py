"""`Descent`: weights on their way to the leader, with an inverse as the preconditioner.

A step takes as long as several rows do. So it can be made in parts, with rows learned in between.
"""

from __future__ import annotations

import numpy as np

from losse._kernels.simd import aligned
from losse.ftl.deferred import Deferred
from losse.ftl.memories.base import Memory
from losse.storage.state import State, StateReader
from losse.typing import Array

STEPS = 20
"""Far more than it takes while the inverse is accurate."""
PARTS = 6
"""Parts of a step."""


class Descent:
    """Weights on their way to the leader for some penalty, with P as the preconditioner.

    One step is mostly enough, and then steepest descent is as good as conjugate gradients, which
    need exact sums. Rows may be learned in between: weights that take a while are as good as those
    of the rows before.

    Parameters
    ----------
    W, R
        The weights and their residual, B - (A + penalty I) W. Both are changed in place.
    penalty
        Lambda.
    excess
        Share of the objective by which the weights may miss the leader.
    steps
        At most so many.
    conjugate
        Whether these are conjugate to each other.
    """

    def __init__(
        self,
        W: Array,
        R: Array,
        penalty: float,
        excess: float,
        *,
        steps: int = STEPS,
        conjugate: bool = False,
    ) -> None:
        self.W = W
        self.penalty = penalty
        self._R = R
        self._excess = excess
        self._left = steps
        self._conjugate = conjugate
        self._direction, self._image = W, R
        self._before = np.zeros(W.shape[1])
        self._given = self._Z = R  # Z = P R, in the making, and R as it was
        self._made = 0  # rows of Z
        self._own_lambda = 0.0
        self.reached = False
        """Whether the weights are the leader but for the excess."""

    @property
    def goes_on(self) -> bool:
        """Whether there is another step to do."""
        return not self.reached and self._left > 0

    @property
    def within(self) -> bool:
        """Whether a step is begun."""
        return self._made > 0

    def advance(self, memory: Memory, own_lambda: float, inverse: Deferred, parts: int) -> None:
        """Do some parts of a step. A step that another P has begun begins anew."""
        D = len(self.W)
        if not self.within or own_lambda != self._own_lambda:
            R, self._made = self._R, 0
            if np.vdot(R, R) <= self._excess * self.penalty * memory.objective(
                self.W, R, self.penalty
            ):
                self.reached = True
                return
            self._given, self._Z, self._own_lambda = R.copy(), aligned(R.shape), own_lambda
        first = self._made
        self._made = last = min(first - (-parts * D // PARTS), D)
        inverse.rows_times(slice(first, last), self._given, self._Z[first:last])
        if last == D:
            self._made = 0
            self._finish()

    def follow(self, T: Array, sign: float) -> None:
        """Take note that P has become P - sign T^T T, so that the step is one for that."""
        if self.within:
            D, made = len(self.W), self._made
            self._Z[:made] -= T[:, :made].T @ (sign * (T[:, :D] @ self._given))

    def _finish(self) -> None:
        W, R, Z = self.W, self._R, self._Z
        self._left -= 1
        descent = np.einsum("ij,ij->j", R, Z)
        ratio = descent / np.where(self._before > 0, self._before, np.inf) * self._conjugate
        direction = Z + ratio * self._direction
        # (A + penalty I) times the direction
        image = self._given + (self.penalty - self._own_lambda) * Z + ratio * self._image
        curvature = np.einsum("ij,ij->j", direction, image)
        if ((curvature <= 0) & (descent != 0)).any():  # rounding has made P or A indefinite
            self._left = 0
            return
        length = descent / np.where(curvature > 0, curvature, 1.0)
        W += length * direction
        R -= length * image
        self._direction, self._image, self._before = direction, image, descent

    def state(self, n_outputs: int) -> State:
        """Values for a checkpoint of a descent to another ridge."""
        S = n_outputs
        return {
            "W": self.W[:, :S], "R": self._R[:, :S], "before": self._before[:S],
            "direction": self._direction[:, :S], "image": self._image[:, :S],
            "penalty": self.penalty, "left": self._left, **self.part_state(n_outputs),
        }  # fmt: skip

    def part_state(self, n_outputs: int) -> State:
        """Values for a checkpoint of a step that is begun."""
        own: State = {"made": self._made}
        if self.within:
            own |= {"given": self._given[:, :n_outputs], "Z": self._Z[:, :n_outputs]}
            own["for"] = self._own_lambda
        return own

    def restore(self, saved: StateReader, n_outputs: int) -> None:
        """Take over what `state` has returned, but for the penalty and the excess."""
        for name, out in (("W", self.W), ("R", self._R)):
            saved.columns(name, out=out, width=n_outputs)
        self._direction, self._image = aligned(self.W.shape), aligned(self.W.shape)
        saved.columns("direction", out=self._direction, width=n_outputs)
        saved.columns("image", out=self._image, width=n_outputs)
        saved.columns("before", out=self._before, width=n_outputs)
        self._left = saved.count("left", at_most=self._left)
        self.restore_part(saved, n_outputs)

    def restore_part(self, saved: StateReader, n_outputs: int) -> None:
        """Take over what `part_state` has returned."""
        self._made = saved.count("made", at_most=len(self.W)) if saved.has("made") else 0
        if self.within:
            self._given, self._Z = aligned(self.W.shape), aligned(self.W.shape)
            saved.columns("given", out=self._given, width=n_outputs)
            saved.columns("Z", out=self._Z, width=n_outputs)
            self._own_lambda = saved.positive("for")
