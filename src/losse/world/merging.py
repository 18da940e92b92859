"""Losse world models that were trained apart become one: their memories are sums."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from losse.ftl import checkpoint
from losse.ftl import merging as ftl
from losse.world.regressors import Regressors

if TYPE_CHECKING:
    from losse.world.losse import LosseWorldModel

Model = TypeVar("Model", bound="LosseWorldModel")


def empty_like(model: Model) -> Model:
    """A model with the same settings, scaling and encoders that has learned nothing."""
    if not model.scaled:
        raise ValueError(
            f"the scaling is not settled after {model.n_transitions} transitions: finish the "
            "warm-up first, or give the spaces finite bounds."
        )
    empty = copy(model)
    empty.n_transitions = 0
    empty._inputs = deepcopy(model._inputs)
    old = model._regressors
    empty._regressors = Regressors(old.template, len(old.models), old.n_targets)
    empty._regressors.models = [one and ftl.empty_like(one) for one in old.models]
    return empty


def require_mergeable(model: LosseWorldModel, other: Any) -> None:
    """Raise unless both models learn the same targets from the same inputs."""
    if not isinstance(other, type(model)):
        raise TypeError(f"other={other!r} is not a LosseWorldModel: only those can be merged.")
    for name in ("observation_space", "action_space"):
        mine, theirs = getattr(model, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(f"other.{name}={theirs} is not this model's, {mine}.")
    if not (model.scaled and other.scaled):
        raise ValueError(
            "the scaling of both models must be settled: finish the warm-up of one, and train "
            "others that are made from it with like()."
        )
    for name in ("reward", "termination"):
        if (getattr(model, name) == "learned") != (getattr(other, name) == "learned"):
            raise ValueError(f"other.{name} is not as in this model: learned, or not, in both.")
    same = model.per_action == other.per_action
    for name in ("shift", "factor"):
        mine, theirs = getattr(model._inputs, name), getattr(other._inputs, name)
        same = same and np.array_equal(mine, theirs)
    if not same:
        raise ValueError(
            "other scales its inputs differently, or differs in per_action: make it with like()."
        )
    mine, theirs = (checkpoint.settings(one._regressors.template) for one in (model, other))
    if mine != theirs:
        raise ValueError(f"other has regressors like {theirs}, but this model like {mine}.")
    for mine, theirs in zip(model._regressors.models, other._regressors.models, strict=True):
        if mine is not None and theirs is not None:
            ftl.require_mergeable(mine, theirs)


def absorb(model: LosseWorldModel, other: LosseWorldModel) -> None:
    """Add what a mergeable model has learned."""
    models = model._regressors.models
    for k, theirs in enumerate(other._regressors.models):
        if theirs is None:
            continue
        mine = models[k] or ftl.empty_like(theirs)
        mine.merge(theirs)
        models[k] = mine
    model.n_transitions += other.n_transitions
