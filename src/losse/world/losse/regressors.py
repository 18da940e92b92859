"""Regressors of a Losse world model: one for all rows, or one for each action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import AdaptiveEncoder, LosseEncoder
from losse.ftl import FTLRegressor, checkpoint, merging
from losse.ftl.construction import check_parameters
from losse.ftl.learning import predict
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

Rows = npt.NDArray[np.int64] | slice

PLANE = 2
"""Inputs up to which the paper's random grids are recommended."""


def paper(n_grids: int = 30) -> FTLRegressor:
    """The paper's model: Algorithm 2 on 2-d grids of 10 bins (30 in discrete control, else 300)."""
    return FTLRegressor(LosseEncoder(n_grids, n_bins=10, grid_dim=2), solver="sparse", ridge=1e-5)


def recommended(n_inputs: int) -> FTLRegressor:
    """The model that `LosseWorldModel` uses unless it is told otherwise.

    In the plane, random grids see everything, and are cheap: the paper's, with a larger ridge,
    which is right more often at rare events such as the end of an episode. With more inputs,
    the adaptive encoder and the self-tuning ridge of ``FTLRegressor()``.
    """
    return paper().set_params(ridge=1e-4) if n_inputs <= PLANE else FTLRegressor()


def template(regressor: Any, n_inputs: int, continuous: bool, seed: int) -> FTLRegressor:
    """A regressor for scaled inputs, not fitted: of a name, a copy of the one given, or None."""
    if regressor is None:
        regressor = recommended(n_inputs)
    elif isinstance(regressor, str):
        if regressor != "paper":
            raise ValueError(
                f'regressor={regressor!r} is not known: use "paper", an FTLRegressor or None.'
            )
        regressor = paper(300 if continuous else 30)
    if not isinstance(regressor, FTLRegressor):
        raise TypeError(f'regressor={regressor!r} is not an FTLRegressor, "paper" or None.')
    if hasattr(regressor, "encoder_") or hasattr(regressor.encoder, "projection_"):
        raise ValueError(
            f"regressor={regressor!r} is fitted, or its encoder is: pass one that is not. To learn "
            "apart and merge, use LosseWorldModel.like()."
        )
    own = clone(regressor)
    if own.encoder is None:
        own.encoder = AdaptiveEncoder()
    check_parameters(own)
    own.encoder.set_params(seed=seed, scaling=None)  # `Inputs` does the scaling
    own.encoder._check_parameters()
    return own


def restored_template(saved: StateReader) -> FTLRegressor:
    """The template that `Regressors.state` has described."""
    pattern = FTLRegressor()
    checkpoint.restore_settings(pattern, saved.part("template"))
    if pattern.encoder is None:
        saved.refuse("the template has no encoder")
    return pattern


class Regressors:
    """One regressor for all rows, or one for each discrete action, made when it is first needed."""

    def __init__(self, template: FTLRegressor, count: int, n_targets: int) -> None:
        self.template = template
        self.models: dict[int, FTLRegressor] = {}
        self._count = count
        self._n_targets = n_targets

    def learn(self, X: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """Let each regressor learn its rows, in their order."""
        parts = dict(self._parts(actions))
        # Those that are new need memory, which may be refused: before any other has learned.
        new = {k: self._new().partial_fit(X[rows], targets[rows])
               for k, rows in parts.items() if k not in self.models}  # fmt: skip
        for k, rows in parts.items():
            if k in self.models:
                self.models[k].partial_fit(X[rows], targets[rows])
        self.models |= new

    def predict(self, X: Array, actions: npt.NDArray[Any]) -> Array:
        """Targets, zero where nothing was learned."""
        targets = np.zeros((len(X), self._n_targets))
        for k, rows in self._parts(actions):
            if k in self.models:
                # `WorldModel` has checked the rows and keeps other threads out: not once more.
                targets[rows] = predict(self.models[k], X[rows])[:, : self._n_targets]
        return targets

    def predict_std(self, X: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Targets and their standard deviations, infinite where nothing was learned."""
        targets = np.zeros((len(X), self._n_targets))
        std = np.full(targets.shape, np.inf)
        for k, rows in self._parts(actions):
            if k in self.models:
                targets[rows], std[rows] = self.models[k].predict(X[rows], return_std=True)
        return targets, std

    def empty(self) -> Regressors:
        """Regressors of the same template, none of which has been started."""
        return Regressors(self.template, self._count, self._n_targets)

    def like(self) -> Regressors:
        """Regressors with the encoders of these that have learned nothing."""
        alike = self.empty()
        alike.models = {k: merging.empty_like(model) for k, model in self.models.items()}
        return alike

    def require_mergeable(self, other: Regressors) -> None:
        """Raise unless what the others have learned can be added to these."""
        mine, theirs = (checkpoint.settings(one.template) for one in (self, other))
        if mine != theirs:
            raise ValueError(f"other has regressors like {theirs}, but this model like {mine}.")
        for k in self.models.keys() & other.models.keys():
            merging.require_mergeable(self.models[k], other.models[k])

    def merge(self, other: Regressors) -> None:
        """Add what other regressors have learned, which can be merged."""
        for k, theirs in other.models.items():
            mine = self.models.get(k) or merging.empty_like(theirs)
            self.models[k] = mine.merge(theirs)

    def state(self) -> State:
        """Values for a checkpoint."""
        state = {
            "started": sorted(self.models),
            **nested("template", checkpoint.settings(self.template)),
        }
        for k, model in sorted(self.models.items()):
            state |= nested(f"regressor{k}", checkpoint.state(model))
        return state

    def restore(self, saved: StateReader, n_inputs: int) -> None:
        """Take over what `state` has returned, but for the template."""
        for k in saved.counts("started", at_most=self._count):
            if k >= self._count or k in self.models:
                saved.refuse(f"started names regressor {k}, which does not exist or is there twice")
            one = FTLRegressor()
            checkpoint.restore(one, saved.part(f"regressor{k}"))
            shape = (one.n_features_in_, one.n_outputs_, one._single)
            if shape != (n_inputs, self._n_targets, False):
                saved.refuse(f"regressor {k} does not suit its spaces")
            self.models[k] = one

    def _new(self) -> FTLRegressor:
        return type(self.template)(**self.template.get_params(deep=False))

    def _parts(self, actions: npt.NDArray[Any]) -> Iterator[tuple[int, Rows]]:
        """Every regressor that is concerned, with its rows."""
        if self._count == 1:
            yield 0, slice(None)
            return
        order = np.argsort(actions, kind="stable")
        chosen, starts = np.unique(actions[order], return_index=True)
        yield from zip(chosen.tolist(), np.split(order, starts[1:]), strict=True)
