"""Regressors of a Losse world model: one for all rows, or one for each action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import LosseEncoder
from losse.ftl import FTLRegressor
from losse.ftl.kept_rows import Rows
from losse.ftl.learner import Learner
from losse.ftl.settings import Settings
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

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


def settings_for(regressor: Any, n_inputs: int, discrete: bool, seed: int) -> Settings:
    """Settings of learners of scaled inputs: those of a regressor, of a name, or for None."""
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
    settings = Settings.of(regressor)
    settings.check()
    encoder = clone(settings.encoder).set_params(seed=seed, scaling=None)  # `Inputs` scales
    encoder.check_parameters()
    return settings.with_encoder(encoder)


class Regressors:
    """One learner for all rows, or one for each discrete action, made when it is first needed."""

    def __init__(self, settings: Settings, count: int, n_targets: int) -> None:
        self.settings = settings
        self.learners: dict[int, Learner] = {}
        self._count = count
        self._n_targets = n_targets

    def learn(self, X: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """Let each learner learn its rows, in their order."""
        rows = Rows(X, targets, np.ones(len(X)))
        parts = {k: rows.take(which) for k, which in self._parts(actions)}
        # Those that are new need memory, which may be refused: before any other has learned.
        new = {k: Learner(self.settings, part)
               for k, part in parts.items() if k not in self.learners}  # fmt: skip
        for k, part in parts.items():
            if k in self.learners:
                self.learners[k].learn(part)
        self.learners |= new

    def predict(self, X: Array, actions: npt.NDArray[Any]) -> Array:
        """Targets, zero where nothing was learned."""
        targets = np.zeros((len(X), self._n_targets))
        for k, which in self._parts(actions):
            if k in self.learners:
                targets[which] = self.learners[k].predict(X[which])
        return targets

    def predict_std(self, X: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Targets and their standard deviations, infinite where nothing was learned."""
        targets = np.zeros((len(X), self._n_targets))
        std = np.full(targets.shape, np.inf)
        for k, which in self._parts(actions):
            if k in self.learners:
                targets[which], std[which] = self.learners[k].predict_std(X[which])
        return targets, std

    def empty(self) -> Regressors:
        """Regressors of the same settings, none of which has been started."""
        return Regressors(self.settings, self._count, self._n_targets)

    def like(self) -> Regressors:
        """Regressors with the encoders of these that have learned nothing."""
        alike = self.empty()
        alike.learners = {k: learner.empty_like() for k, learner in self.learners.items()}
        return alike

    def require_mergeable(self, other: Regressors) -> None:
        """Raise unless what the others have learned can be added to these."""
        mine, theirs = self.settings.state(), other.settings.state()
        if mine != theirs:
            raise ValueError(f"other has regressors like {theirs}, but this model like {mine}.")
        for k in self.learners.keys() & other.learners.keys():
            self.learners[k].require_mergeable(other.learners[k])

    def merge(self, other: Regressors) -> None:
        """Add what other regressors have learned, which can be merged."""
        for k, theirs in other.learners.items():
            mine = self.learners.get(k) or theirs.empty_like()
            mine.absorb(theirs)
            mine.solve()
            self.learners[k] = mine

    def state(self) -> State:
        """Values for a checkpoint."""
        settings = nested("template", self.settings.state())
        state = {"started": sorted(self.learners), **settings}
        for k, learner in sorted(self.learners.items()):
            state |= nested(f"regressor{k}", learner.state())
        return state

    def restore(self, saved: StateReader, n_inputs: int) -> None:
        """Take over what `state` has returned, but for the settings."""
        for k in saved.counts("started", at_most=self._count):
            if k >= self._count or k in self.learners:
                saved.refuse(f"started names regressor {k}, which does not exist or is there twice")
            one = Learner.read(self.settings, saved.part(f"regressor{k}"))
            if (one.n_features, one.n_outputs) != (n_inputs, self._n_targets):
                saved.refuse(f"regressor {k} does not suit its spaces")
            self.learners[k] = one

    def _parts(
        self, actions: npt.NDArray[Any]
    ) -> Iterator[tuple[int, npt.NDArray[np.int64] | slice]]:
        """Every learner that is concerned, with its rows."""
        if self._count == 1:
            yield 0, slice(None)
            return
        order = np.argsort(actions, kind="stable")
        chosen, starts = np.unique(actions[order], return_index=True)
        yield from zip(chosen.tolist(), np.split(order, starts[1:]), strict=True)
