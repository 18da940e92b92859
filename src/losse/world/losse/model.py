"""`LosseWorldModel`: the paper's world model, which learns online and does not forget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count
from losse.ftl import FTLRegressor
from losse.ftl.kept_rows import KeptRows, Rows
from losse.ftl.learner import Learner
from losse.ftl.settings import Settings
from losse.interrupts import deferred_interrupts
from losse.locking import UNCOPIED, locked
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.world.checkpoint import SPACES, CheckpointedModel
from losse.world.known import Function, Known, learned_part
from losse.world.losse.inputs import Inputs
from losse.world.losse.learners import Learners, Past, scales_itself, settings_of
from losse.world.spaces import flat

GROWTH = 2
"""The scaling is learned anew whenever the rows have become this many times more."""


class LosseWorldModel(CheckpointedModel):
    """A world model on follow-the-leader regression (section 3 of the paper).

    After every `update` it is the fit of *all* transitions so far, whatever their order, at a
    cost per transition that does not grow. Changes of the state, rewards and terminations are
    outputs of the same regressor. Each output's weights follow from its own targets alone, and in
    proportion to them, so outputs in different units do not need to be normalised.

    Where nothing was learned, the paper's grids predict zeros: no change, no reward, no
    termination. With negative rewards that is optimistic, and invites an agent to go and see. The
    recommended model of more than two inputs tends to the mean of what it has seen (``center`` of
    `FTLRegressor`).

    Parameters
    ----------
    observation_space, action_space, termination, reward
        As in `WorldModel`.
    regressor
        An `FTLRegressor` that is not fitted, to be used as a pattern: its encoder gets the seed
        given here and, unless it is an `AdaptiveEncoder`, inputs that are scaled already.
        ``"paper"``: the paper's settings, 30 grids for discrete actions, 300 (and 3 GB) for
        continuous ones. None: the recommended one, which is ``FTLRegressor()``, or the paper's
        grids for no more than two inputs.
    per_action
        With discrete actions, one regressor for each (True), or a single one that sees the
        action as a one-hot input.
    warm_up
        Inputs without bounds are scaled by the mean and standard deviation of the first
        ``warm_up`` transitions or a little more. Until then these are kept: whenever their number
        has doubled, the scaling is learned anew and the model made anew from all of them. Not
        needed where all spaces are bounded, nor by an `AdaptiveEncoder`: it learns a scaling
        whenever it is built, the last time from its own ``warm_up`` of 32,000 rows.
    seed
        Seed of the encoder.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(0, 1, (2,)), Discrete(2), termination="never")
    >>> rng = np.random.default_rng(0)
    >>> obs, actions = rng.uniform(0.1, 0.9, (1000, 2)), rng.integers(0, 2, 1000)
    >>> next_obs = obs + np.where(actions == 0, 0.1, -0.1)[:, None]
    >>> model.update(obs, actions, np.ones(1000), next_obs, np.zeros(1000, dtype=bool))
    >>> next_obs, rewards, terminated = model.step([[0.5, 0.5], [0.5, 0.5]], [0, 1])
    >>> next_obs.round(2)
    array([[0.6, 0.6],
           [0.4, 0.4]], dtype=float32)
    """

    kind = "losse.LosseWorldModel"
    has_std = True
    learner: ClassVar[Any] = Learner
    """What learns: `Learner`, or a class with the same verbs."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        termination: str | Function = "learned",
        reward: Known = "learned",
        regressor: FTLRegressor | str | None = None,
        per_action: bool = True,
        warm_up: int = 500,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_space, action_space, termination=termination, reward=reward)
        check_count("warm_up", warm_up)
        check_count("seed", seed, at_least=0)
        self.per_action = bool(per_action) and self.actions.discrete
        width = Inputs(self.observations, self.actions, with_actions=not self.per_action).width
        settings = self._settings_of(regressor, width, seed)
        self._standardised = not scales_itself(settings.encoder)
        self.inputs = self._new_inputs()
        n_learners = self.actions.width if self.per_action else 1
        self.learners = Learners(settings, n_learners, self._n_targets, self.learner)
        self._warm_up = warm_up
        self._scaled_at = 0  # rows from which the scaling was learned
        self.kept: KeptRows | None = None
        if not self.inputs.bounded:
            n_actions = 1 if self.actions.discrete else self.actions.width
            self.kept = KeptRows(self.observations.width + n_actions, self._n_targets)

    @property
    def scaled(self) -> bool:
        """Whether the scaling is settled: from the start, or since the warm-up."""
        return self.kept is None

    @property
    def settled(self) -> bool:
        """Whether the scaling and all encoders stay as they are, so that no rows are kept."""
        return self.scaled and self.learners.final

    def like(self) -> Self:
        """A new model that has learned nothing, with this one's settings, scaling and encoders.

        What it learns can be merged into this one. The scaling must be settled.

        >>> from gymnasium.spaces import Box, Discrete
        >>> model = LosseWorldModel(Box(0, 1, (1,)), Discrete(2))
        >>> elsewhere = model.like()
        >>> elsewhere.update([[0.5]], [0], [1.0], [[0.6]], [False])
        >>> model.merge(elsewhere)
        >>> model.n_transitions
        1
        """
        with self.lock:
            if not self.scaled:
                raise ValueError(
                    f"the scaling is not settled after {self.n_transitions} transitions: finish "
                    "the warm-up first, or give the spaces finite bounds."
                )
            cls = type(self)
            empty = cls.__new__(cls)
            own = {name: value for name, value in vars(self).items() if name not in UNCOPIED}
            fresh = {"inputs": deepcopy(self.inputs), "learners": self.learners.like()}
            empty.__dict__.update(own | fresh, n_transitions=0)
            return empty

    def merge(self, *others: LosseWorldModel) -> None:
        """Add all transitions that other models have learned, exactly, without having them.

        All must have the same spaces, scaling and encoders: those of bounded spaces and the same
        seed, or made by `like`. They stay as they are. Either all are added or, if there is an
        error, none.
        """
        for other in others:
            if not isinstance(other, type(self)):
                raise TypeError(
                    f"other={other!r} is not a LosseWorldModel: only those can be merged."
                )
        with locked(self, *others), self.changing(), deferred_interrupts():
            for other in others:
                self._require_mergeable(other)
            self.learners.require_mergeable(*(other.learners for other in others))
            self.learners.merge(*(other.learners for other in others))
            self.n_transitions += sum(other.n_transitions for other in others)

    def insight(self) -> list[dict[str, Any]]:
        """What each learner has settled on: its encoder, its ridge, its prequential error.

        >>> from gymnasium.spaces import Box, Discrete
        >>> model = LosseWorldModel(Box(0, 1, (1,)), Discrete(2))
        >>> model.update([[0.5]], [1], [1.0], [[0.6]], [False])
        >>> [(one["learner"], one["ridge"]) for one in model.insight()]
        [(1, 0.0001)]
        """
        with self.lock:
            return [
                {"learner": k if self.per_action else None} | about
                for k, about in self.learners.insight().items()
            ]

    def _require_mergeable(self, other: LosseWorldModel) -> None:
        """Raise unless both models learn the same targets from the same inputs."""
        for name in ("observation_space", "action_space"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(f"other.{name}={theirs} is not this model's, {mine}.")
        if not (self.scaled and other.scaled):
            raise ValueError(
                "the scaling of both models must be settled: finish the warm-up of one, and train "
                "others that are made from it with like()."
            )
        for name in ("reward", "termination"):
            mine, theirs = (learned_part(getattr(model, name)) for model in (self, other))
            if mine != theirs:
                raise ValueError(
                    f"other.{name} is not as in this model: learned, in part, or not, in both."
                )
        if self.per_action != other.per_action or not self.inputs.same(other.inputs):
            raise ValueError(
                "other scales its inputs differently, or differs in per_action: make it with "
                "like()."
            )

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        if self.kept is None:
            past = partial(self._past_rows, self.n_transitions + len(states))
            self.learners.learn(self.inputs.matrix(states, actions), actions, targets, past)
            return
        new = Rows(np.column_stack([states, actions]), targets, np.ones(len(states)))
        rows = self.kept.rows + new
        if len(rows) >= min(self._warm_up, GROWTH * self._scaled_at):
            self._start_again(rows)
        else:
            self.learners.learn(self.inputs.matrix(states, actions), actions, targets)
            self.kept.add(new)

    def _past_rows(self, n: int) -> Past | None:
        """Inputs, actions and targets of all n rows so far, if they are kept elsewhere."""
        happened = self.past(n)
        if happened is None:
            return None
        rows = self.checked(*happened)
        steps = happened.obs, happened.actions, happened.next_obs
        targets = self._targets(rows, steps)
        return self.inputs.matrix(rows.obs, rows.actions), rows.actions, targets

    def _start_again(self, rows: Rows) -> None:
        """Learn the scaling from all rows so far, and then the rows."""
        inputs, learners = self._new_inputs(), self.learners.empty()
        states, actions = self._parted(rows.X)
        inputs.learn(states, actions)
        learners.learn(inputs.matrix(states, actions), actions, rows.Y)
        kept = None
        if len(rows) < self._warm_up:
            kept = KeptRows(rows.X.shape[1], self._n_targets)
            kept.add(rows)
        self.inputs, self.learners, self.kept, self._scaled_at = inputs, learners, kept, len(rows)

    def _parted(self, X: Array) -> tuple[Array, npt.NDArray[Any]]:
        """States and actions of kept rows, which have them side by side."""
        d = self.observations.width
        return X[:, :d], X[:, d].astype(np.int64) if self.actions.discrete else X[:, d:]

    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        return self.learners.predict(self.inputs.matrix(states, actions), actions)

    def _snapshot(self) -> Callable[..., Array]:
        inputs, predict = self.inputs, self.learners.frozen()
        return lambda states, actions: predict(inputs.matrix(states, actions), actions)

    def _predict_std(self, states: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        return self.learners.predict_std(self.inputs.matrix(states, actions), actions)

    def _settings_of(self, regressor: Any, width: int, seed: int) -> Settings:
        """Settings of each learner, checked."""
        return settings_of(regressor, width, self.actions.continuous, seed)

    def _new_inputs(self) -> Inputs:
        return Inputs(
            self.observations,
            self.actions,
            with_actions=not self.per_action,
            standardised=self._standardised,
        )

    def _state(self) -> State:
        state = {
            "per_action": self.per_action,
            "scaled": self.scaled,
            **nested("inputs", self.inputs.state()),
            **self.learners.state(),
        }
        if self.kept is not None:
            sizes = {"size": self._warm_up, "scaled_at": self._scaled_at}
            state |= nested("warm_up", sizes | self.kept.state())
        return state

    @classmethod
    def _settings(cls, saved: StateReader, task: Mapping[str, Any]) -> dict[str, Any]:
        observations, actions = (flat(name, task[name]) for name in SPACES)
        width = observations.width + (0 if actions.discrete else actions.width)
        saved.part("inputs").require_shape("shift", (width,))
        settings = Settings.read(saved.part("template"))
        regressor = FTLRegressor(**settings.parameters)
        size = 1 if saved.flag("scaled") else saved.part("warm_up").count("size")
        return {
            "per_action": saved.flag("per_action"),
            "regressor": regressor,
            "seed": settings.encoder.seed,
            "warm_up": size,
        }

    def restore(self, saved: StateReader, version: int) -> None:
        super().restore(saved, version)
        if self.per_action != saved.flag("per_action"):
            saved.refuse("per_action does not suit its spaces")
        self.inputs.restore(saved.part("inputs"))
        if saved.flag("scaled"):
            self.kept = None
        elif self.kept is None:
            saved.refuse("scaled=False does not suit its bounded spaces")
        else:
            self._restore_kept(self.kept, saved.part("warm_up"), version)
        self.learners.restore(saved, self.inputs.width)

    def _restore_kept(self, kept: KeptRows, saved: StateReader, version: int) -> None:
        """Take over the rows of the warm-up."""
        if version >= 2:
            kept.restore(saved)
        else:
            n, d = saved.count("rows"), self.observations.width
            discrete = self.actions.discrete
            shape, dtype = ((n,), np.int64) if discrete else ((n, self.actions.width), np.float64)
            actions = saved.array("actions", shape, dtype)
            X = np.column_stack([saved.array("states", (n, d)), actions])
            kept.add(Rows(X, saved.array("targets", (n, self._n_targets)), np.ones(n)))
        self._scaled_at = saved.count("scaled_at", at_most=len(kept.rows))
        if self.actions.discrete:
            choices = kept.rows.X[:, -1]
            inside = (choices >= 0) & (choices < self.actions.width) & (choices % 1 == 0)
            if not inside.all():
                saved.refuse("actions lie outside the space")
