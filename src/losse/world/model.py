"""The base of all world models: checked transitions, single steps and rollouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.interrupts import deferred_interrupts
from losse.locking import Guarded
from losse.typing import Array
from losse.world.known import (
    Function,
    Known,
    PartlyKnown,
    learned_part,
    require_reward,
    require_termination,
)
from losse.world.rollout import Policy, Rollout, roll_out
from losse.world.spaces import flat, numbers, require_moderate
from losse.world.transitions import Transitions, Values

Steps = tuple[Values, Values, Values]
"""Batches of observations, actions and next observations."""
Imagined = tuple[Values, Array, npt.NDArray[np.bool_]]


class WorldModel(Guarded, ABC):
    """A model of an environment that learns from transitions and imagines others.

    One model holds all that happens in a step: the change of the state, the reward and the
    termination. Subclasses learn and predict rows of numbers (`_learn`, `_predict`); spaces, checks
    and everything built on single steps are here.

    Parameters
    ----------
    observation_space, action_space
        `Box` of any shape, `Discrete` and `MultiDiscrete` (which become one-hot), `MultiBinary`,
        and `Dict` and `Tuple` of these. Batches of a `Dict` are dicts of batches, those of a
        `Tuple` tuples, as in Gymnasium's vector environments. Images are refused.
    termination
        ``"learned"``: a step ends an episode where the model's prediction is above a half.
        ``"never"``: no step does. A function of (obs, actions, next_obs), all batches, to one
        boolean per row: it decides.
    reward
        ``"learned"``, or a function of (obs, actions, next_obs) to one number per row. A
        `PartlyKnown` knows a part of it, such as the cost of the actions; the rest is learned.

    Attributes
    ----------
    n_transitions
        Rows learned so far.
    observations, actions
        The spaces in flattened form, see `losse.world.spaces`.
    lock
        Held while the model learns, predicts or is copied.
    has_std
        Whether the model knows how sure it is, so that `step` can return standard deviations.
    on_device
        Whether it has a `dynamics`, whose steps stay on JAX's device.
    """

    has_std: ClassVar[bool] = False
    on_device: ClassVar[bool] = False

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        termination: str | Function = "learned",
        reward: Known = "learned",
    ) -> None:
        self.observations = flat("observation_space", observation_space)
        self.actions = flat("action_space", action_space)
        require_termination(termination)
        require_reward(reward)
        self.observation_space = observation_space
        self.action_space = action_space
        self.termination = termination
        self.reward = reward
        self.n_transitions = 0

    def update(
        self,
        obs: Values,
        actions: Values,
        rewards: npt.ArrayLike,
        next_obs: Values,
        terminated: npt.ArrayLike,
    ) -> None:
        """Learn from transitions: one, or a batch of any size, from any number of environments.

        All arguments have one row per transition. After the end of an episode ``next_obs`` is the
        last observation of that episode, not the first of the next. A batch that is refused leaves
        the model as it was; Ctrl-C waits until a batch is learned.
        """
        rows = self.checked(obs, actions, rewards, next_obs, terminated)
        n = len(rows)
        if n == 0:
            return
        targets = self._targets(rows, (obs, actions, next_obs))
        with self.changing(), deferred_interrupts():
            self._learn(rows.obs, rows.actions, targets)
            self.n_transitions += n

    @overload
    def step(
        self, obs: Values, actions: Values, *, return_std: Literal[False] = False
    ) -> Imagined: ...
    @overload
    def step(
        self, obs: Values, actions: Values, *, return_std: Literal[True]
    ) -> tuple[Values, Array, npt.NDArray[np.bool_], Array]: ...

    def step(
        self, obs: Values, actions: Values, *, return_std: bool = False
    ) -> Imagined | tuple[Values, Array, npt.NDArray[np.bool_], Array]:
        """Imagine one step from each of a batch of observations.

        Returns
        -------
        next_obs
            In the space's dtype and shape, within its bounds.
        rewards, terminated
            One number and one boolean per row.
        std
            With ``return_std``: standard deviations of the next observation, (n, width of the
            flattened observation). Infinite where the model has learned nothing. Models that
            do not know their uncertainty raise `NotImplementedError`.
        """
        states = self.observations.rows("obs", obs)
        n, d = states.shape
        chosen = self.actions.inputs("actions", actions, n)
        std = np.empty((0, d))
        if n == 0:
            targets = np.empty((0, self._n_targets))
        elif return_std:
            with self.lock:
                targets, deviations = self._predict_std(states, chosen)
            std = deviations[:, :d]
        else:
            targets = self.read(lambda predict: predict(states, chosen))
        next_obs = self.observations.restore(states + targets[:, :d])
        imagined = (next_obs, *self._outcome(obs, actions, next_obs, targets))
        return (*imagined, std) if return_std else imagined

    def _live(self) -> Callable[..., Array]:
        return self._predict

    def rollout(
        self,
        obs: Values,
        policy: Policy,
        horizon: int,
        *,
        max_std: npt.ArrayLike | None = None,
    ) -> Rollout:
        """Imagine short episodes, one from each row of ``obs``.

        Parameters
        ----------
        obs
            Where they start.
        policy
            A function of a batch of observations to a batch of actions, such as
            ``lambda obs: agent.predict(obs)[0]``.
        horizon
            The number of steps, at least 1. A row goes no further after a termination.
        max_std
            A number, or one per dimension of the flattened observation: a step whose next
            observation has a larger standard deviation is left out, and its row ends there.

        Returns
        -------
        Rollout
            All imagined transitions, step by step.
        """
        return roll_out(self, obs, policy, horizon, max_std)

    def use_past(self, past: Callable[[int], Transitions | None]) -> None:
        """Tell a model where to find the transitions that it has learned, should it need them.

        A `LosseWorldModel` with an `AdaptiveEncoder` keeps rows until the encoder's ``warm_up`` is
        over. With this it is built anew at every doubling after that, too. Copies and files have no
        such source.

        Parameters
        ----------
        past
            A function of a number: that of all transitions so far, those of an update under way
            included. It returns them, oldest first, or None if it has not exactly these.
        """
        self._past = past

    def past(self, n: int) -> Transitions | None:
        """All n transitions so far, or None if nobody keeps them."""
        past = self.__dict__.get("_past")
        return None if past is None else past(n)

    def insight(self) -> list[dict[str, Any]]:
        """What each learner of the model has settled on; empty for models that cannot say.

        Returns
        -------
        list of dict
            ``learner``: the action that it is for, or None. ``encoder``, ``features``: kind and
            size of the encoder. ``ridge``. ``prequential_error``: squared error before learning
            over the variance of the targets. ``axes``: share of each input in the encoder's axes.
        """
        return []

    def checked(
        self, obs: Values, actions: Values, rewards: Any, next_obs: Values, terminated: Any
    ) -> Transitions:
        """Transitions as rows of numbers, if they can be learned from."""
        states = self.observations.rows("obs", obs)
        n = len(states)
        gained = _column("rewards", rewards, n)
        require_moderate("rewards", gained)
        return Transitions(
            states,
            self.actions.inputs("actions", actions, n),
            gained,
            self.observations.rows("next_obs", next_obs, n),
            _booleans("terminated", terminated, n),
        )

    @abstractmethod
    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        """Learn n > 0 checked rows.

        states: (n, d), flattened (Discrete: one-hot). actions: (n,) numbers from 0 for a Discrete
        space, otherwise (n, k), flattened. targets: (n, S), the change of the state (d columns),
        then the reward and the termination (0 or 1), each if it is learned.
        """

    @abstractmethod
    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        """Targets of n > 0 checked rows. Before anything was learned: those of no change."""

    def _predict_std(self, states: Array, actions: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Targets and their standard deviations, both (n, S), of a model with `has_std`."""
        raise NotImplementedError(
            f"{type(self).__name__} does not know how sure it is: use LosseWorldModel, or leave "
            "out return_std and max_std."
        )

    def _targets(self, rows: Transitions, steps: Steps) -> Array:
        """Targets of checked rows: the change of the state, and what else is learned.

        ``steps`` are the observations and actions of the rows as they were given.
        """
        n, d = rows.obs.shape
        targets = np.empty((n, self._n_targets))
        np.subtract(rows.next_obs, rows.obs, out=targets[:, :d])
        if isinstance(self.reward, PartlyKnown):
            targets[:, d] = rows.rewards - self._said("reward.part", self.reward.part, steps, n)
        elif self.reward == "learned":
            targets[:, d] = rows.rewards
        if self.termination == "learned":
            targets[:, -1] = rows.terminated
        return targets

    @property
    def _n_targets(self) -> int:
        rules = self.reward, self.termination
        return self.observations.width + sum(learned_part(rule) is not None for rule in rules)

    def _outcome(
        self, obs: Values, actions: Values, next_obs: Values, targets: Array
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Rewards and terminations, as predicted or as the given functions say."""
        n, steps = len(targets), (obs, actions, next_obs)
        if isinstance(self.reward, PartlyKnown):
            rest = targets[:, self.observations.width]
            rewards = rest + self._said("reward.part", self.reward.part, steps, n)
        elif callable(self.reward):
            rewards = self._said("reward", self.reward, steps, n)
        else:
            rewards = targets[:, self.observations.width].copy()
        if callable(self.termination):
            given = self._in_space(steps)
            return rewards, _booleans("the result of termination", self.termination(*given), n)
        if self.termination == "never":
            return rewards, np.zeros(n, dtype=bool)
        return rewards, targets[:, -1] > 0.5

    def _said(self, name: str, reward: Function, steps: Steps, n_rows: int) -> Array:
        """Rewards that a function says, checked."""
        said = _column(f"the result of {name}", reward(*self._in_space(steps)), n_rows)
        require_moderate(f"the result of {name}", said)
        return said

    def _in_space(self, steps: Steps) -> Steps:
        """Batches as functions get them: in the dtypes of the spaces."""
        obs, actions, next_obs = steps
        cast = self.observations.cast
        return cast(obs), self.actions.cast(actions), cast(next_obs)


def _column(name: str, values: Any, n_rows: int) -> Array:
    column = numbers(name, values)
    if column.shape != (n_rows,):
        raise ValueError(f"{name} has shape {column.shape}, expected ({n_rows},): one per row.")
    return column


def _booleans(name: str, values: Any, n_rows: int) -> npt.NDArray[np.bool_]:
    column = _column(name, values, n_rows)
    if not ((column == 0) | (column == 1)).all():
        raise ValueError(f"{name} contains values other than true and false (1 and 0).")
    return column == 1
