"""Learners of a Losse world model: one for all rows, or one for each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import Encoder, LosseEncoder
from losse.ftl import FTLRegressor
from losse.ftl.kept_rows import Rows
from losse.ftl.learner import Learner
from losse.ftl.settings import Settings, Source
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

Past = tuple[Array, npt.NDArray[Any], Array]
"""Inputs, actions and targets of all rows so far."""
SMALL = 60
"""Grids up to which Algorithm 2 is quick."""
PLANE = 2
"""Inputs up to which the paper's random grids are recommended."""


def paper(n_grids: int = 30) -> FTLRegressor:
    """The paper's model: Algorithm 2 on 2-d grids of 10 bins (30 in discrete control, else 300).

    At 300 grids Algorithm 2 reads 1200 of 36,300 rows of A for every sample, and solves for as many
    weights. There the same leader is approached by conjugate gradients, for a small part of the
    cost; in floats, as in the paper's listing.
    """
    encoder = LosseEncoder(n_grids, n_bins=10, grid_dim=2)
    if n_grids > SMALL:
        return FTLRegressor(encoder, ridge=1e-5, dtype="float32")
    return FTLRegressor(encoder, solver="sparse", ridge=1e-5)


def recommended(n_inputs: int) -> FTLRegressor:
    """The model that `LosseWorldModel` uses unless it is told otherwise.

    In the plane, random grids see everything, and are cheap: the paper's, with a larger ridge,
    which is right more often at rare events such as the end of an episode. With more inputs,
    the adaptive encoder and the self-tuning ridge of ``FTLRegressor()``.
    """
    return paper().set_params(ridge=1e-4) if n_inputs <= PLANE else FTLRegressor()


def settings_of(regressor: Any, n_inputs: int, continuous: bool, seed: int) -> Settings:
    """Settings for such inputs: those of a name, of a regressor that is not fitted, or of None.

    ``continuous`` says whether actions are, for the size of the paper's model.
    """
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
    settings = Settings.of(regressor)
    settings.check()
    if hasattr(regressor, "n_features_in_") or settings.encoder.fitted:
        raise ValueError(
            f"regressor={regressor!r} is fitted, or its encoder is: pass one that is not. To learn "
            "apart and merge, use LosseWorldModel.like()."
        )
    encoder = clone(settings.encoder).set_params(seed=seed)
    if not scales_itself(encoder):
        encoder.set_params(scaling=None)  # `Inputs` does that
    encoder.check_parameters()
    return settings.with_encoder(encoder)


def scales_itself(encoder: Encoder) -> bool:
    """Whether an encoder learns the scaling of its inputs anew whenever it is built."""
    return encoder.warm_up > 0 and encoder.scaling is not None


class Learners:
    """One learner for all rows, or one for each discrete action, made when it is first needed.

    Parameters
    ----------
    settings
        Settings of each learner.
    count
        Number of learners.
    n_targets
        Width of the targets.
    kind
        What learns: `Learner`, or a class with the same verbs.
    """

    def __init__(self, settings: Settings, count: int, n_targets: int, kind: Any = Learner) -> None:
        self.settings = settings
        self.started: dict[int, Any] = {}
        self._kind = kind
        self._count = count
        self._n_targets = n_targets

    @property
    def final(self) -> bool:
        """Whether all learners have been started, with encoders that stay as they are."""
        started = self.started.values()
        return len(started) == self._count and all(learner.final for learner in started)

    def learn(
        self,
        X: Array,
        actions: npt.NDArray[Any],
        targets: Array,
        past: Callable[[], Past | None] | None = None,
    ) -> None:
        """Let each learner learn its rows, in their order.

        ``past`` returns inputs, actions and targets of all rows so far, these included, or None:
        an encoder that learns from targets is built from them after its warm-up.
        """
        order, parts_of = self._grouped(actions)
        rows = Rows(X[order], targets[order], np.ones(len(X)))
        parts = {k: rows[part] for k, part in parts_of}
        # Those that are new need memory, which may be refused: before any other has learned.
        new = {k: self._kind(self.settings, part)
               for k, part in parts.items() if k not in self.started}  # fmt: skip
        for k, part in parts.items():
            if k in self.started:
                self.started[k].learn(part, self._source(k, past))
        self.started |= new

    def _source(self, k: int, past: Callable[[], Past | None] | None) -> Source | None:
        """Past rows of one learner, if its encoder learns from targets."""
        if past is None or not self.settings.encoder.warm_up:
            return None

        def own() -> tuple[Array, Array] | None:
            found = past()
            if found is None:
                return None
            X, actions, targets = found
            order, parts = self._grouped(actions)
            rows = order[dict(parts)[k]]
            return X[rows], targets[rows]

        return own

    def predict(self, X: Array, actions: npt.NDArray[Any]) -> Array:
        """Targets, zero where nothing was learned."""
        return self._predicted(self.started, X, actions)

    def frozen(self) -> Callable[[Array, npt.NDArray[Any]], Array]:
        """What predicts as these learners do now, and stays as it is."""
        frozen = {k: learner.frozen() for k, learner in self.started.items()}
        return lambda X, actions: self._predicted(frozen, X, actions)

    def _predicted(self, started: Mapping[int, Any], X: Array, actions: npt.NDArray[Any]) -> Array:
        if self._count == 1 and started:
            return started[0].predict(X)
        order, parts = self._grouped(actions)
        rows, grouped = X[order], np.zeros((len(X), self._n_targets))
        for k, part in parts:
            if k in started:
                grouped[part] = started[k].predict(rows[part])
        targets = np.empty(grouped.shape)
        targets[order] = grouped
        return targets

    def predict_std(self, X: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Targets and their standard deviations, infinite where nothing was learned."""
        targets = np.zeros((len(X), self._n_targets))
        std = np.full(targets.shape, np.inf)
        order, parts = self._grouped(actions)
        for k, part in parts:
            if k in self.started:
                rows = order[part]
                targets[rows], std[rows] = self.started[k].predict_std(X[rows])
        return targets, std

    def insight(self) -> dict[int, dict[str, Any]]:
        """Encoder, ridge and prequential error of each learner that has been started."""
        found = {}
        for k, learner in sorted(self.started.items()):
            encoder = learner.encoder
            axes = np.abs(encoder.projection_[: encoder.n_features_in_])
            shares = axes.reshape(len(axes), -1).sum(axis=1)
            found[k] = {
                "encoder": type(encoder).__name__,
                "features": encoder.dimension,
                "ridge": learner.ridge,
                "prequential_error": learner.prequential_error,
                "axes": (shares / max(shares.sum(), 1e-300)).tolist(),
            }
        return found

    def empty(self) -> Learners:
        """Learners of the same settings, none of which has been started."""
        return Learners(self.settings, self._count, self._n_targets, self._kind)

    def like(self) -> Learners:
        """Learners with the encoders of these that have learned nothing."""
        alike = self.empty()
        alike.started = {k: learner.empty_like() for k, learner in self.started.items()}
        return alike

    def require_mergeable(self, *others: Learners) -> None:
        """Raise unless what the others have learned can be added to these."""
        mine, patterns = self.settings.state(), dict(self.started)
        for other in others:
            theirs = other.settings.state()
            if mine != theirs:
                raise ValueError(f"other has regressors like {theirs}, but this model like {mine}.")
            for k, learner in other.started.items():
                patterns.setdefault(k, learner).require_mergeable(learner)

    def merge(self, *others: Learners) -> None:
        """Add what other learners have learned, which can be merged."""
        changed: dict[int, Any] = {}
        for other in others:
            for k, theirs in other.started.items():
                mine = changed.get(k) or self.started.get(k) or theirs.empty_like()
                mine.absorb(theirs)
                changed[k] = mine
        for learner in changed.values():
            learner.solve()
        self.started |= changed

    def state(self) -> State:
        """Values for a checkpoint."""
        state = {"started": sorted(self.started), **nested("template", self.settings.state())}
        for k, learner in sorted(self.started.items()):
            state |= nested(f"regressor{k}", learner.state())
        return state

    def restore(self, saved: StateReader, n_inputs: int) -> None:
        """Take over what `state` has returned, but for the settings."""
        for k in saved.counts("started", at_most=self._count):
            if k >= self._count or k in self.started:
                saved.refuse(f"started names regressor {k}, which does not exist or is there twice")
            learner = self._kind.read(self.settings, saved.part(f"regressor{k}"))
            if (learner.n_features, learner.n_outputs) != (n_inputs, self._n_targets):
                saved.refuse(f"regressor {k} does not suit its spaces")
            self.started[k] = learner

    def _grouped(
        self, actions: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], list[tuple[int, slice]]]:
        """An order of rows by learner, and which of them then belong to each that is concerned."""
        n = len(actions)
        if self._count == 1:
            return np.arange(n), [(0, slice(0, n))]
        # Small integers are sorted without comparisons.
        order = np.argsort(actions.astype(np.min_scalar_type(self._count)), kind="stable")
        ends = np.cumsum(np.bincount(actions, minlength=self._count)).tolist()
        bounds = zip([0, *ends], ends, strict=False)
        return order, [(k, slice(a, b)) for k, (a, b) in enumerate(bounds) if a < b]
