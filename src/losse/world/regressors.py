"""Which regressors a Losse world model is made of, and how several share the rows of a batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import AdaptiveEncoder, LosseEncoder
from losse.ftl import FTLRegressor
from losse.ftl.construction import check_parameters
from losse.ftl.learning import predict
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


def template(regressor: Any, n_inputs: int, discrete: bool, seed: int) -> FTLRegressor:
    """A regressor for scaled inputs, not fitted: of a name, a copy of the one given, or None."""
    if regressor is None:
        regressor = recommended(n_inputs)
    elif isinstance(regressor, str):
        if regressor != "paper":
            raise ValueError(
                f'regressor={regressor!r} is not known: use "paper", an FTLRegressor or None.'
            )
        regressor = paper(30 if discrete else 300)
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


class Regressors:
    """One regressor for all rows, or one for each discrete action, made when it is first needed."""

    def __init__(self, template: FTLRegressor, count: int, n_targets: int) -> None:
        self.template = template
        self.n_targets = n_targets
        self.models: list[FTLRegressor | None] = [None] * count

    def learn(self, X: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """Let each regressor learn its rows, in their order."""
        parts = list(self._parts(actions))
        # Those that are new need memory, which may be refused: before any other has learned.
        new = {k: self._new().partial_fit(X[rows], targets[rows])
               for k, rows in parts if self.models[k] is None}  # fmt: skip
        for k, rows in parts:
            model = self.models[k]
            if model is not None:
                model.partial_fit(X[rows], targets[rows])
        for k, model in new.items():
            self.models[k] = model

    def predict(self, X: Array, actions: npt.NDArray[Any]) -> Array:
        """Targets, zero where nothing was learned."""
        targets = np.zeros((len(X), self.n_targets))
        for k, rows in self._parts(actions):
            model = self.models[k]
            if model is not None:
                # `WorldModel` has checked the rows and keeps other threads out: not once more.
                targets[rows] = predict(model, X[rows])[:, : self.n_targets]
        return targets

    def predict_std(self, X: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Targets and their standard deviations, infinite where nothing was learned."""
        targets = np.zeros((len(X), self.n_targets))
        std = np.full(targets.shape, np.inf)
        for k, rows in self._parts(actions):
            model = self.models[k]
            if model is not None:
                targets[rows], std[rows] = model.predict(X[rows], return_std=True)
        return targets, std

    def _new(self) -> FTLRegressor:
        return type(self.template)(**self.template.get_params(deep=False))

    def _parts(self, actions: npt.NDArray[Any]) -> Iterator[tuple[int, Rows]]:
        """Every regressor that is concerned, with its rows."""
        count = len(self.models)
        if count == 1:
            yield 0, slice(None)
            return
        order = np.argsort(actions, kind="stable")
        ends = np.searchsorted(actions[order], np.arange(count + 1))
        for k in range(count):
            if ends[k] < ends[k + 1]:
                yield k, order[ends[k] : ends[k + 1]]
