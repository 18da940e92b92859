"""`LosseWorldModel`: the paper's world model, which learns online and does not forget."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count
from losse.ftl import FTLRegressor
from losse.storage.archive import Progress
from losse.typing import Array
from losse.world import checkpoint, merging
from losse.world.inputs import Inputs
from losse.world.model import Function, WorldModel
from losse.world.regressors import Regressors, template
from losse.world.warm_up import WarmUp


class LosseWorldModel(WorldModel):
    """A world model on follow-the-leader regression (section 3 of the paper).

    After every `update` it is the fit of *all* transitions so far, whatever their order, at a
    cost per transition that does not grow. Changes of the state, rewards and terminations are
    outputs of the same regressor. Each output's weights follow from its own targets alone, and in
    proportion to them, so outputs in different units do not need to be normalised.

    Where nothing was learned the model predicts zeros: no change, no reward, no termination. With
    negative rewards that is optimistic, and invites an agent to go and see.

    Parameters
    ----------
    observation_space, action_space, termination, reward
        As in `WorldModel`.
    regressor
        An `FTLRegressor` that is not fitted, to be used as a pattern: its encoder gets inputs
        that are scaled already, and the seed given here. ``"paper"``: the paper's settings,
        30 grids for discrete actions, 300 (and 5.5 GB) for continuous ones. None: the recommended
        one, which is ``FTLRegressor()``, or the paper's grids for no more than two inputs.
    per_action
        With discrete actions, one regressor for each (True), or a single one that sees the
        action as a one-hot input.
    warm_up
        Inputs without bounds are scaled by the mean and standard deviation of the first
        ``warm_up`` transitions or a little more. Until then these are kept: whenever their number
        has doubled, the scaling is learned anew and the model made anew from all of them. Not
        needed where all spaces are bounded.
    seed
        Of the encoder.

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

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        termination: str | Function = "learned",
        reward: str | Function = "learned",
        regressor: FTLRegressor | str | None = None,
        per_action: bool = True,
        warm_up: int = 500,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_space, action_space, termination=termination, reward=reward)
        check_count("warm_up", warm_up)
        check_count("seed", seed, at_least=0)
        self.per_action = bool(per_action) and self._actions.discrete
        n_inputs = self._new_inputs().width
        self._begin(template(regressor, n_inputs, self._actions.discrete, seed), warm_up)

    @property
    def scaled(self) -> bool:
        """Whether the scaling is settled: from the start, or since the warm-up."""
        return self._warm_up is None

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
        with self._guard:
            return merging.empty_like(self)

    def merge(self, other: LosseWorldModel) -> None:
        """Add all transitions that another model has learned, exactly, without having them.

        Both must have the same spaces, scaling and encoders: those of bounded spaces and the same
        seed, or made by `like`. ``other`` stays as it is.
        """
        merging.require_mergeable(self, other)
        # Always in the same order, or two threads could wait for each other.
        first, second = (self, other) if id(self) < id(other) else (other, self)
        with first._guard, second._guard:
            merging.absorb(self, other)

    def save(self, path: str | os.PathLike[str], progress: bool | Progress = True) -> None:
        """Write the model to one file, atomically and without pickle; see `FTLRegressor.save`.

        Functions given as ``termination`` and ``reward`` are not written.
        """
        with self._guard:
            checkpoint.save(self, path, progress)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
        termination: Function | None = None,
        reward: Function | None = None,
        progress: bool | Progress = True,
    ) -> Self:
        """Read a model that `save` has written; it goes on bit for bit as the saved one would.

        Parameters
        ----------
        path
            Of the file.
        observation_space, action_space
            If given, those that the model must have been made for.
        termination, reward
            The functions, if the model had such.
        progress
            As in `FTLRegressor.load`.
        """
        given = {
            "observation_space": observation_space,
            "action_space": action_space,
            "termination": termination,
            "reward": reward,
        }
        return checkpoint.load(cls, path, given, progress)

    def _begin(self, pattern: FTLRegressor, warm_up: int) -> None:
        """Become a model that has learned nothing."""
        self._inputs = self._new_inputs()
        self._regressors = Regressors(pattern, self._n_regressors, self._n_targets)
        self._warm_up: WarmUp | None = None
        if not self._inputs.bounded:
            d = self._observations.width
            discrete = self._actions.discrete
            actions = np.empty(0, np.int64) if discrete else np.empty((0, self._actions.width))
            self._warm_up = WarmUp(
                warm_up, np.empty((0, d)), actions, np.empty((0, self._n_targets))
            )

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        kept = self._warm_up
        if kept is not None:
            kept = kept.extended(states, actions, targets)
            if kept.due:
                self._start_again(kept)
                return
        self._regressors.learn(self._inputs.matrix(states, actions), actions, targets)
        self._warm_up = kept

    def _start_again(self, kept: WarmUp) -> None:
        """Learn the scaling from all rows so far, and then the rows."""
        inputs = self._new_inputs()
        inputs.learn(kept.states, kept.actions)
        regressors = Regressors(self._regressors.template, self._n_regressors, self._n_targets)
        X = inputs.matrix(kept.states, kept.actions)
        regressors.learn(X, kept.actions, kept.targets)
        self._inputs, self._regressors = inputs, regressors
        self._warm_up = None if kept.complete else replace(kept, scaled_at=len(kept))

    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        return self._regressors.predict(self._inputs.matrix(states, actions), actions)

    def _predict_std(self, states: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        return self._regressors.predict_std(self._inputs.matrix(states, actions), actions)

    def _new_inputs(self) -> Inputs:
        return Inputs(self._observations, self._actions, with_actions=not self.per_action)

    @property
    def _n_regressors(self) -> int:
        return self._actions.width if self.per_action else 1
