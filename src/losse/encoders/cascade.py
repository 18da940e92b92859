r"""A cascade of closed-form models, each of which sees the predictions of the one before.

One layer of random features, fitted by ridge regression, is a shallow model. Its predictions,
given to a second one as further inputs, and those of the second to a third, make a deep one,
without gradient descent. The predictions must be those of a model that has not seen the row: those
of leaving the row out, which ridge regression has in closed form.

A stage is :math:`U = W^T [h \, \sigma(2 h), v, 1]` with :math:`h = 3 \tanh(P^T v / 3) + c`, which
keeps it within bounds where there were no data. Most of its directions P are gradients of the
targets, found by a first round with random ones.

Fitting is work in units (`losse.work`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from losse._kernels.cascade import BOUND, UNITS, bend, stage_outputs
from losse._kernels.simd import aligned, padded
from losse.encoders.boosted import BoostedGrids, fit_boosted
from losse.encoders.directions import draw_directions, few_inputs, unit_spread
from losse.encoders.ridge_regression import Dual, Features, Primal, ridge_fit
from losse.typing import Array
from losse.work import UNIT, Work, blocks

CLEARLY = 0.9
"""Error of boosted grids over that of a first stage, above which they are left out."""
LEAST_ROWS = 400
"""Rows below which there are no boosted grids."""
TRIAL_ROWS, TRIAL_GRIDS = 2000, 60
"""Of a trial: outputs whose error is larger there than that of a first stage are left out."""
MOST_GRIDS = 400
"""Of the fit to all rows that follows the trial."""
HIDDEN = 500
"""Directions of a stage, at most; never more than rows."""
INPUTS = 3
"""Inputs that a random direction mixes."""
FOUND = 0.8
"""Share of a stage's directions that are gradients."""
PLACES = 800
"""Rows at which gradients are taken."""
FIRST_RIDGE = 1e-3
RIDGES = (1e-4, 1e-3, 1e-2)
"""Of which a stage takes the one with the least error on rows left out."""
# Operations that take as long as a unit with its slope and a place in memory, new for half of them.
_MADE = 300.0
# Rows whose units are made at once: of more, arrays take longer to come by than to fill.
_ROWS = 64
# Where tanh(u / `BOUND`) is one in single precision.
_FAR = 60.0
# Inputs from which on sums of squares are too large for single precision.
_LARGE = 1e15

Single = npt.NDArray[np.float32]


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

    def __iter__(self) -> Iterator[Array]:
        yield from (self.directions, self.offsets, self.weights)

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


class Lead(NamedTuple):
    """Boosted grids before the first stage, and their predictions of rows by fits without them."""

    grids: BoostedGrids
    left_out: Array


def fit_cascade(
    Z: Array,
    Q: Array,
    weights: Array,
    some: npt.NDArray[np.int64],
    n_stages: int,
    rng: np.random.Generator,
) -> Work[tuple[Lead | None, list[Stage], Array, Array]]:
    """Stages for targets of unit spread, what the last one hands on, and gradients of one more.

    The stages are fitted to some of the rows. Before them are boosted grids, for the outputs which
    they predict better than the first stage. The gradients are (places, outputs, inputs), each
    output's without its mean.

    >>> from losse.work import finished
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(300, 3))
    >>> fitting = fit_cascade(Z, Z[:, :2] ** 2, np.ones(300), np.arange(300), 1, rng)
    >>> _, stages, V, gradients = finished(fitting)
    >>> len(stages), V.shape, gradients.shape
    (1, (300, 5), (300, 2, 5))
    """
    lead, stages, V = None, [], Z[some]
    own, share = Q[some], weights[some]
    for k in range(n_stages):
        fit = yield from _fit_stage(V, own, share, rng)
        left_out = yield from fit.left_out()
        if k == 0:
            errors = share @ (left_out - own) ** 2 / share.sum()
            lead = yield from _fit_lead(Z, Q, weights, errors, rng.spawn(1)[0])
            if lead is not None:
                V = np.hstack([V, lead.left_out[some]])
                fit = yield from _fit_stage(V, own, share, rng)
                left_out = yield from fit.left_out()
        stages.append(fit.stage)
        V = np.hstack([Z[some], left_out])
    fit = yield from _fit_stage(V, own, share, rng)
    gradients = yield from _gradients(V[fit.places], *fit.stage)
    return lead, stages, V, gradients


def _fit_lead(
    Z: Array, Q: Array, weights: Array, errors: Array, rng: np.random.Generator
) -> Work[Lead | None]:
    """Grids for those outputs that they predict clearly better than others did, if any."""
    if len(Z) < LEAST_ROWS:
        return None
    trial = slice(None, None, -(-len(Z) // TRIAL_ROWS))
    few, some, share = Z[trial], Q[trial], weights[trial]
    _, left_out = yield from fit_boosted(few, some, share, TRIAL_GRIDS, rng, errors)
    found = share @ (left_out - some) ** 2 / share.sum()
    hopeful = np.flatnonzero(found < errors)
    if len(hopeful) == 0:
        return None
    grids, left_out = yield from fit_boosted(Z, Q[:, hopeful], weights, MOST_GRIDS, rng)
    found = weights @ (left_out - Q[:, hopeful]) ** 2 / weights.sum()
    better = np.flatnonzero(found < CLEARLY * errors[hopeful])
    return Lead(grids.of(better), left_out[:, better]) if len(better) else None


def apply_cascade(lead: BoostedGrids | None, stages: Sequence[Stage], Z: Array) -> Array:
    """The inputs, and what the last stage predicts for them."""
    V = first_inputs(lead, Z)
    for stage in stages:
        V = np.hstack([Z, stage.predict(V)])
    return V


def first_inputs(lead: BoostedGrids | None, Z: Array) -> Array:
    """What the first stage sees."""
    return Z if lead is None else np.hstack([Z, lead.predict(Z)])


def seeing_first(lead: BoostedGrids | None, Z: Array) -> Work[Array]:
    """What `first_inputs` returns, as work in units."""
    parts = []
    for part in blocks(len(Z), 2e4):
        parts.append(first_inputs(lead, Z[part]))
        yield (part.stop - part.start) * 2e4
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A stage, and what it takes to tell its predictions of rows left out."""

    stage: Stage
    places: npt.NDArray[np.int64]
    ridge_fit: Primal | Dual
    Q: Array
    root: Array

    def left_out(self) -> Work[Array]:
        """Prediction of every row by the fit of all others."""
        residual = yield from self.ridge_fit.residuals(slice(None))
        return np.asarray(self.Q - residual / self.root)


def _fit_stage(V: Array, Q: Array, weights: Array, rng: np.random.Generator) -> Work[_Fit]:
    root = np.sqrt(weights / weights.mean())[:, None]
    few = min(INPUTS, V.shape[1])
    count = min(HIDDEN, len(V))
    P = unit_spread(few_inputs(rng, V.shape[1], (count,), few), V, weights)
    offsets = rng.normal(size=count)
    places = rng.permutation(len(V))[:PLACES]
    single = np.abs(V).max(initial=0.0) * root.max() < _LARGE
    F = aligned((len(V), count + V.shape[1] + 1), np.float32 if single else np.float64)
    yield from _write_features(V, P, offsets, root, F)
    first = yield from ridge_fit(F, Q * root, (FIRST_RIDGE,))
    gradients = yield from _gradients(V[places], P, offsets, first.W)
    found = draw_directions(gradients, int(FOUND * count), 1, rng)
    if found is not None:
        P[:, : found.shape[1]] = unit_spread(found[:, :, 0], V, weights)
    yield from _write_features(V, P, offsets, root, F)
    fit = yield from ridge_fit(F, Q * root, RIDGES)
    return _Fit(Stage(P, offsets, fit.W), places, fit, Q, root)


def _write_features(V: Array, P: Array, offsets: Array, root: Array, F: Features) -> Work[None]:
    """Features of a stage, its units in single precision; each row times its root."""
    m = P.shape[1]
    for part in blocks(len(V), UNIT / _ROWS):
        bent, _ = _units(V[part], P, offsets)
        F[part, :m] = bent * root[part]
        F[part, m:-1] = V[part] * root[part]
        F[part, -1:] = root[part]
        yield (part.stop - part.start) * m * _MADE


def _units(V: Array, P: Array, offsets: Array) -> tuple[Single, Single]:
    """Units of a stage, and their slopes."""
    m = P.shape[1]
    units = aligned((3, len(V), padded(m, np.float32)), np.float32)
    places = aligned((units.shape[2],), np.float32)
    places[:m] = offsets
    units[0, :, :m] = np.clip(V @ P, -_FAR, _FAR)
    bend(units[0], places, units[1], units[2])
    return units[0, :, :m], units[1, :, :m] * units[2, :, :m]


def _gradients(V: Array, P: Array, offsets: Array, W: Array) -> Work[Array]:
    """Of all outputs at some rows, without their means: linear terms make no difference."""
    m = P.shape[1]
    slope = np.empty((len(V), m), np.float32)
    for part in blocks(len(V), UNIT / _ROWS):
        _, slope[part] = _units(V[part], P, offsets)
        yield (part.stop - part.start) * m * _MADE
    slope -= slope.mean(axis=0)
    # Row by row, the slopes times what each unit contributes to each output along each input.
    shares = (W[:m, :, None] * P.T[:, None]).reshape(m, -1).astype(np.float32)
    out = np.empty((len(V), W.shape[1], len(P)))
    for part in blocks(len(V), shares.size):
        out[part] = (slope[part] @ shares).reshape(-1, *out.shape[1:])
        yield float(part.stop - part.start) * shares.size
    return out


def _moderate(values: Array) -> Array:
    """Values within the range of single precision, which no data but only a file may leave."""
    return np.clip(values, -1e20, 1e20)
