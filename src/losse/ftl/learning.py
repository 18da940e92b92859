"""How rows enter a model: scored, weighted, encoded, learned, and kept where that is needed."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import TYPE_CHECKING

import numpy as np

from losse._kernels.simd import aligned, padded
from losse.ftl.building import (
    build_encoder,
    given_encoder,
    holds_rows,
    is_built_again,
    is_due,
)
from losse.ftl.construction import fitted_encoder, new_solver
from losse.ftl.past import Past, Rows, rows_of
from losse.ftl.prequential import Prequential
from losse.ftl.ridges import first_ridge, new_contest
from losse.typing import Array

if TYPE_CHECKING:
    from losse.ftl.regressor import FTLRegressor

# Active features encoded at once, and the weight at which discounted sums are scaled back.
_CHUNK_ENTRIES = 1 << 22
_LARGEST_WEIGHT = 1e15
# Of a row that a discount has all but forgotten.
_SMALLEST_WEIGHT = 1e-100
TESTED, LEAST_TESTED = 8, 64
"""One in so many rows tests ridges when an encoder is built, if there are as many."""


def start(model: FTLRegressor, X: Array, targets: Array, weights: Array) -> None:
    """Begin anew with these rows; the model is as before if that fails."""
    draft = copy(model)
    draft.n_outputs_ = 1 if targets.ndim == 1 else targets.shape[1]
    draft._single = targets.ndim == 1
    draft.n_features_in_ = X.shape[1]
    draft.n_samples_seen_ = 0
    draft._prequential = Prequential(draft.n_outputs_)
    draft._posterior = None
    draft._past = None
    draft._built = 0
    draft._weight = 1.0  # of the latest row, in the memories
    rows = Rows(X, targets.reshape(len(X), -1), weights)
    if is_built_again(model):
        given_encoder(model)._check_parameters()
        draft._past = Past(X.shape[1], draft.n_outputs_)
        aged = _aged(draft, rows)
        draft._prequential.add(np.zeros_like(rows.Y), rows.Y, weights, aged.weights)
        _build(draft, aged)
    else:
        draft.encoder_ = fitted_encoder(given_encoder(model), X, weights)
        _clear(draft)
        learn(draft, X, targets, weights)
    model.__dict__.update(vars(draft))


def learn(model: FTLRegressor, X: Array, Y: Array, weights: Array) -> None:
    """Learn more rows."""
    rows = Rows(X, Y.reshape(len(X), -1), weights)
    model._posterior = None
    due = _is_due(model, len(X))
    if due and model._past is not None:
        aged = _aged(model, rows)
        draft = _draft(model, len(X))
        _score(draft, rows, aged.weights)
        _build(draft, _faded(model, len(X)) + aged)
        model.__dict__.update(vars(draft))
        return
    step = rows_at_once(model)
    for first in range(0, len(X), step):
        part = rows[first : first + step] if step < len(X) else rows
        grown = _discounted(model, part.weights)
        _score(model, part, grown)
        _take_in(model, part.weighing(grown))
    if due and callable(model.past):
        n, draft = model.n_samples_seen_, _draft(model, 0)
        _build(draft, rows_of(model.past, model))
        draft.n_samples_seen_ = draft._built = n
        model.__dict__.update(vars(draft))


def relearn(model: FTLRegressor, rows: Rows) -> None:
    """Learn rows of another model, with the weights that they have in the memories of this one."""
    model._posterior = None
    due = _is_due(model, len(rows))
    if due and model._past is not None:
        draft = _draft(model, 0)
        theirs = rows.weighing(rows.weights / model._weight)
        _build(draft, _faded(model, 0) + theirs)
        model.__dict__.update(vars(draft))
    else:
        _take_in_parts(model, rows)


def unlearn(model: FTLRegressor, X: Array, Y: Array, weights: Array) -> None:
    """Take rows out, with the weights that they have in the memories; all or none."""
    rows = Rows(X, Y.reshape(len(X), -1), weights)
    places = np.empty(0, dtype=np.int64) if model._past is None else model._past.places(rows)
    model._solver.unlearn(model.encoder_.encode(X), filled(rows.Y), weights)
    if model._past is not None:
        model._past.drop(places)
    if model._contest is not None:
        model._contest.stop()
    model._posterior = None
    model.n_samples_seen_ -= len(X)


def predict(model: FTLRegressor, X: Array) -> Array:
    """Predicted targets of checked rows, padded like B."""
    W = model._solver.weights
    out = aligned((len(X), W.shape[1]))
    model.encoder_.times(X, W, out)
    return out


def filled(values: Array) -> Array:
    """Rows that are padded like those of B."""
    out = aligned((len(values), padded(values.shape[1])))
    out[:, : values.shape[1]] = values
    return out


def rows_at_once(model: FTLRegressor) -> int:
    """Rows whose features fit in little memory, and whose discount in the range of doubles."""
    rows = _CHUNK_ENTRIES // model.encoder_.n_active
    if model.discount < 1:
        rows = min(rows, int(np.log(_LARGEST_WEIGHT) / -np.log(model.discount)))
    return max(1, rows)


def _is_due(model: FTLRegressor, more: int) -> bool:
    """Whether the encoder is to be built when some more rows come."""
    if model._past is None and not callable(model.past):
        return False
    return is_due(model, model._built, model.n_samples_seen_ + more)


def _draft(model: FTLRegressor, later: int) -> FTLRegressor:
    """A copy to be built anew, which takes the model's place when it is complete.

    Weights are counted from the last of ``later`` rows, which weighs one.
    """
    draft = copy(model)
    draft._prequential = deepcopy(model._prequential)
    draft._prequential.loss *= model.discount**later / model._weight
    draft._weight = 1.0
    return draft


def _build(draft: FTLRegressor, rows: Rows) -> None:
    """Build the encoder from these rows, and learn them anew."""
    n = len(rows)
    keep = draft._past is not None and holds_rows(draft, n)
    # The latest rows, which the encoder has not seen, say which ridge suits it.
    tested = n // TESTED if draft.ridge == "auto" and n >= LEAST_TESTED else 0
    draft.encoder_ = build_encoder(draft, rows[: n - tested])
    draft._past = Past(rows.X.shape[1], draft.n_outputs_) if keep else None
    draft._built = n
    _clear(draft)
    contest, draft._contest = draft._contest, None
    _take_in_parts(draft, rows[: n - tested])
    draft._contest = contest
    if contest is not None:
        contest.open(draft._solver, n - tested, tested)
    _take_in_parts(draft, rows[n - tested :])


def _clear(model: FTLRegressor) -> None:
    """Empty memories for the model's encoder."""
    ridge = first_ridge(model)
    model._solver = new_solver(model, model.encoder_, model.n_outputs_, ridge)
    model._contest = new_contest(model)
    model.n_samples_seen_ = 0


def _take_in_parts(model: FTLRegressor, rows: Rows) -> None:
    """Any number of rows, some at a time."""
    step = rows_at_once(model)
    for first in range(0, len(rows), step):
        _take_in(model, rows[first : first + step])


def _take_in(model: FTLRegressor, rows: Rows) -> None:
    """Learn rows with the weights that they have in the memories."""
    first = 0
    while first < len(rows):
        last = len(rows)
        if model._contest is not None:
            last = min(last, first + model._contest.rows_left)
        _take_in_part(model, rows[first:last] if last - first < len(rows) else rows)
        if model._contest is not None:
            model._contest.review(model._solver, model._prequential.spread)
        first = last


def _take_in_part(model: FTLRegressor, rows: Rows) -> None:
    """What is interrupted once it is in the memories is not lost."""
    features, Y = model.encoder_.encode(rows.X), filled(rows.Y)
    if model._contest is not None:
        model._contest.score(features, Y, rows.weights)
    total = model._solver.memory.total
    try:
        model._solver.learn(features, Y, rows.weights)
    except BaseException:
        model._solver.refresh()  # what was derived from the memories may be half-made
        raise
    finally:
        if model._solver.memory.total != total:
            model.n_samples_seen_ += len(features)
            if model._past is not None:
                model._past.add(rows)


def _score(model: FTLRegressor, rows: Rows, grown: Array) -> None:
    """Predict rows before they are learned; ``grown`` are their weights in the memories."""
    predictions = predict(model, rows.X)[:, : model.n_outputs_]
    model._prequential.add(predictions, rows.Y, rows.weights, grown)


def _faded(model: FTLRegressor, later: int) -> Rows:
    """The rows held, with the weights that they have when some more are learned."""
    assert model._past is not None
    rows = model._past.rows
    if model.discount == 1.0:
        return rows
    weights = rows.weights * (model.discount**later / model._weight)
    return rows.weighing(np.maximum(weights, _SMALLEST_WEIGHT))


def _aged(model: FTLRegressor, rows: Rows) -> Rows:
    """New rows with the weights that they have when the last of them is learned."""
    if model.discount == 1.0:
        return rows
    ages = np.arange(len(rows) - 1.0, -1.0, -1.0)
    weights = np.maximum(rows.weights * model.discount**ages, _SMALLEST_WEIGHT)
    return rows.weighing(weights)


def _discounted(model: FTLRegressor, weights: Array) -> Array:
    """Weights that grow from row to row, which is the same as letting the past shrink."""
    if model.discount == 1.0:
        return weights
    if model._weight > _LARGEST_WEIGHT:
        factor = 1.0 / model._weight
        model._solver.rescale(factor)
        model._prequential.loss *= factor
        if model._past is not None:
            model._past.scale(factor)
        model._weight = 1.0
    growth = model._weight * model.discount ** -np.arange(1.0, len(weights) + 1.0)
    model._weight = float(growth[-1])
    return np.asarray(weights * growth)
