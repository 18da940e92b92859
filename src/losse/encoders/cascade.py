r"""A cascade of closed-form models, each of which sees the predictions of the one before.

One layer of random features, fitted by ridge regression, is a shallow model. Its predictions,
given to a second one as further inputs, and those of the second to a third, make a deep one,
without gradient descent. The predictions must be those of a model that has not seen the row: those
of leaving the row out, which ridge regression has in closed form.

A stage is :math:`U = W^T [h \, \sigma(2 h), v, 1]` with :math:`h = 3 \tanh(P^T v / 3) + c`, which
keeps it within bounds where there were no data. Most of its directions P are gradients of the
targets, found by a first round with random ones.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.special import expit

from losse._kernels.cascade import BOUND, UNITS, stage_outputs
from losse._kernels.simd import aligned, padded
from losse.encoders.directions import draw_directions, few_inputs, unit_spread
from losse.typing import Array

HIDDEN = 1000
"""Directions of a stage, at most; never more than rows."""
INPUTS = 3
"""Inputs that a random direction mixes."""
FOUND = 0.8
"""Share of a stage's directions that are gradients."""
PLACES = 800
"""Rows at which gradients are taken."""
FIRST_RIDGE = 1e-3
RIDGES, LARGEST_RIDGE = (1e-4, 1e-3, 1e-2), 100.0
"""Of which a stage takes the one with the least error on rows left out; if it is the largest, ten
times as much is tried, and so on."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One closed-form model: directions (d, m), offsets (m) and weights (m + d + 1, outputs)."""

    directions: Array
    offsets: Array
    weights: Array

    def predict(self, V: Array) -> Array:
        """Predictions for rows that the stage was not fitted on, units in single precision."""
        out = np.empty((len(V), self.weights.shape[1]))
        stage_outputs(V, *self._prepared, out)
        return out

    def state(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        return {
            "directions": self.directions,
            "offsets": self.offsets,
            "weights": self.weights,
        }

    @cached_property
    def _prepared(self) -> tuple[npt.NDArray[Any], ...]:
        """Directions, offsets, weights, and the affine part of these, as the kernel takes them."""
        d, m = self.directions.shape
        units, outputs = -(-m // UNITS) * UNITS, self.weights.shape[1]
        directions, offsets = aligned((d, units), np.float32), aligned((units,), np.float32)
        weights = aligned((units, padded(outputs, np.float32)), np.float32)
        directions[:, :m] = _moderate(self.directions / BOUND)
        offsets[:m] = _moderate(self.offsets)
        weights[:m, :outputs] = _moderate(self.weights[:m])
        affine = aligned((d, weights.shape[1]), np.float32)
        affine[:, :outputs] = _moderate(self.weights[m:-1])
        return directions, offsets, weights, affine, self.weights[-1].copy()

    def __getstate__(self) -> dict[str, Array]:
        return self.state()


def fit_cascade(
    Z: Array, Q: Array, weights: Array, n_stages: int, rng: np.random.Generator
) -> tuple[list[Stage], Array, Array]:
    """Stages for targets of unit spread, what the last one hands on, and gradients of one more.

    The gradients are (places, outputs, inputs), each output's without its mean.

    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(300, 3))
    >>> stages, V, gradients = fit_cascade(Z, Z[:, :2] ** 2, np.ones(300), 1, rng)
    >>> len(stages), V.shape, gradients.shape
    (1, (300, 5), (300, 2, 5))
    """
    stages, V = [], Z
    for _ in range(n_stages):
        stage, left_out, _ = fit_stage(V, Q, weights, rng)
        stages.append(stage)
        V = np.hstack([Z, left_out])
    _, _, gradients = fit_stage(V, Q, weights, rng)
    return stages, V, gradients


def apply_cascade(stages: list[Stage], Z: Array) -> Array:
    """The inputs, and what the last stage predicts for them."""
    V = Z
    for stage in stages:
        V = np.hstack([Z, stage.predict(V)])
    return V


def fit_stage(
    V: Array, Q: Array, weights: Array, rng: np.random.Generator
) -> tuple[Stage, Array, Array]:
    """A stage, its predictions of rows left out, and its gradients."""
    root = np.sqrt(weights / weights.mean())[:, None]
    few = min(INPUTS, V.shape[1])
    count = min(HIDDEN, len(V))
    P = unit_spread(few_inputs(rng, V.shape[1], (count,), few), V, weights)
    offsets = rng.normal(size=count)
    places = rng.permutation(len(V))[:PLACES]
    W = _ridge_solve(_features(V, P, offsets) * root, Q * root)
    found = draw_directions(_gradients(V[places], P, offsets, W), int(FOUND * count), 1, rng)
    if found is not None:
        P[:, : found.shape[1]] = unit_spread(found[:, :, 0], V, weights)
    F = _features(V, P, offsets) * root
    W, residual = _ridge_fits(F, Q * root)
    stage = Stage(P, offsets, W)
    return stage, Q - residual / root, _gradients(V[places], P, offsets, W)


def _features(V: Array, P: Array, offsets: Array) -> Array:
    m, d = P.shape[1], V.shape[1]
    F = np.empty((len(V), m + d + 1))
    H, _ = _squashed(V, P)
    H += offsets
    np.multiply(H, expit(2.0 * H), out=F[:, :m])
    F[:, m : m + d] = V
    F[:, -1] = 1.0
    return F


def _squashed(V: Array, P: Array) -> tuple[Array, Array]:
    """Projections held within [-BOUND, BOUND], and the slope of that."""
    T = np.tanh(V @ (P / BOUND))
    return BOUND * T, 1.0 - T * T


def _gradients(V: Array, P: Array, offsets: Array, W: Array) -> Array:
    """Of all outputs at some rows, without their means: linear terms make no difference."""
    H, slope = _squashed(V, P)
    H += offsets
    S = expit(2.0 * H)
    slope *= S * (1.0 + 2.0 * H * (1.0 - S))
    slope -= slope.mean(axis=0)
    return np.stack([(slope * w) @ P.T for w in W[: P.shape[1]].T], axis=1)


def _moderate(values: Array) -> Array:
    """Values within the range of single precision, which no data but only a file may leave."""
    return np.clip(values, -1e20, 1e20)


def _factor(A: Array, ridge: float) -> Array:
    """Lower Cholesky factor of A + ridge I; where rounding forbids it, of a larger ridge."""
    while True:
        try:
            return np.asarray(cholesky(A + ridge * np.eye(len(A)), lower=True, check_finite=False))
        except LinAlgError:  # inputs that are large and not scaled
            ridge = max(10 * ridge, 1e-15 * float(A.diagonal().max()))


def _ridge_solve(F: Array, Q: Array) -> Array:
    """Weights for `FIRST_RIDGE`."""
    n, D = F.shape
    A = F.T @ F if n >= D else F @ F.T
    L = _factor(A, FIRST_RIDGE * n)
    if n >= D:
        return np.asarray(cho_solve((L, True), F.T @ Q, check_finite=False))
    return np.asarray(F.T @ cho_solve((L, True), Q, check_finite=False))


def _ridge_fits(F: Array, Q: Array) -> tuple[Array, Array]:
    """Weights for the best of some ridges, and the residual of every row under all others' fit."""
    n, D = F.shape
    system = F.T @ F if n >= D else F @ F.T
    right = F.T @ Q if n >= D else Q
    best, least = None, np.inf
    ridges = list(RIDGES)
    for ridge in ridges:
        L = _factor(system, ridge * n)
        W = cho_solve((L, True), right, check_finite=False)
        if n >= D:
            half = solve_triangular(L, F.T, lower=True, check_finite=False)
            rest = 1.0 - np.einsum("dn,dn->n", half, half)
            residual = (Q - F @ W) / np.maximum(rest, 1e-9)[:, None]
        else:  # W is the dual solution
            residual = W / dpotri(L, lower=1)[0].diagonal()[:, None]
            W = F.T @ W
        error = float((residual**2).sum())
        if best is None or error < least:
            best, least = (W, residual), error
            if ridge == ridges[-1] < LARGEST_RIDGE:
                ridges.append(10.0 * ridge)
    assert best is not None
    return best
