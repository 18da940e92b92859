"""Objective of a plan: rewards, ends of episodes, and how sure the model is."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_positive
from losse.typing import Array
from losse.world import WorldModel

Rows = npt.NDArray[Any]
Function = Callable[[Rows, Rows, Rows], npt.ArrayLike]
"""Of (obs, actions, next_obs), batches as the environment has them, to one value per row."""
Value = Callable[[Rows], npt.ArrayLike]
"""Of a batch of observations to one value per row."""

LARGEST = 1e30
"""A model whose observations or rewards grow beyond this has diverged."""
LEAST_SURE = 1e6
"""Largest scaled standard deviation that curiosity counts; models may say infinity."""


@dataclass(frozen=True)
class Objective:
    """The return that a planner maximises, of futures that a world model imagines.

    Parameters
    ----------
    reward
        None: as the model predicts it. A function of (obs, actions, next_obs), all batches, to one
        number per row: it decides, and the model is used for its next observations alone.
    termination
        None: as the model has it. ``"never"``: no step ends an episode. A function of (obs,
        actions, next_obs) to one boolean per row. After its end a future gains nothing more.
    value
        A function of a batch of observations to what can still be gained from there; it is added
        at the end of the horizon.
    discount
        What a reward is worth one step later, above 0 and at most 1.
    curiosity
        Added to each step's reward for every unit of the model's standard deviation, the mean over
        the observation's dimensions. Above 0 the planner goes to see what the model does not know,
        below 0 it stays with what the model knows.
    std_scale
        The unit of ``curiosity``: a number, or one per dimension of the flattened observation.
        None: 1, or as a `PlanningAgent` finds it.
    max_std
        A number, or one per dimension of the flattened observation. A future ends before a step
        whose standard deviation is larger. Each step that is then missing counts as much as the
        worst that was imagined: what is not known is taken to be bad.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from losse.planning import Objective
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Box(-1, 1, (1,)))  # knows nothing: all stays
    >>> near = Objective(reward=lambda obs, actions, next_obs: -np.abs(next_obs[:, 0]))
    >>> actions = np.zeros((2, 5, 1))  # two sequences of five actions
    >>> near.returns(model, np.array([0.5]), actions)
    array([-2.5, -2.5])
    """

    reward: Function | None = None
    termination: Function | str | None = None
    value: Value | None = None
    discount: float = 1.0
    curiosity: float = 0.0
    std_scale: npt.ArrayLike | None = None
    max_std: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("reward", "value"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise TypeError(f"{name}={given!r} must be a function or None.")
        ends = self.termination
        if ends is not None and ends != "never" and not callable(ends):
            raise ValueError(f'termination={ends!r} must be a function, "never" or None.')
        check_positive("discount", self.discount)
        if self.discount > 1:
            raise ValueError(f"discount={self.discount!r} must be at most 1.")
        if not np.isfinite(self.curiosity):
            raise ValueError(f"curiosity={self.curiosity!r} must be a finite number.")
        for name in ("std_scale", "max_std"):
            given = getattr(self, name)
            if given is not None and not (np.asarray(given, dtype=np.float64) > 0).all():
                raise ValueError(f"{name}={given!r} must be above 0.")

    @property
    def needs_std(self) -> bool:
        """Whether the model must say how sure it is."""
        return self.curiosity != 0 or self.max_std is not None

    def try_out(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
    ) -> None:
        """Call all functions with two rows of such spaces; raise if a result makes no sense."""
        obs, actions = _two_rows(observation_space), _two_rows(action_space)
        if self.reward is not None:
            column("reward", self.reward(obs, actions, obs), 2)
        if callable(self.termination):
            column("termination", self.termination(obs, actions, obs), 2)
        if self.value is not None:
            column("value", self.value(obs), 2)

    def returns(self, model: WorldModel, obs: npt.ArrayLike, actions: Rows) -> Array:
        """What each of n sequences of actions, (n, horizon, ...), gains from one observation."""
        start = np.asarray(obs, dtype=model.observation_space.dtype)
        futures = Futures(model, self, np.repeat(start[None], len(actions), axis=0))
        for step in range(actions.shape[1]):
            futures.step(actions[:, step])
        futures.require_finite()
        return futures.returns()


class Futures:
    """Imagined futures under way, one per row.

    Parameters
    ----------
    model, objective
        What imagines them, and what judges them.
    obs
        Where they start, one observation per row.

    Attributes
    ----------
    obs
        Where each one is.
    gained
        Its discounted rewards so far; minus infinity once the model has diverged.
    going
        Whether it goes on: not at its end, and not stopped for lack of knowledge.
    """

    def __init__(self, model: WorldModel, objective: Objective, obs: Rows) -> None:
        n = len(obs)
        self.obs = obs
        self.gained = np.zeros(n)
        self.going = np.ones(n, dtype=bool)
        self._model = model
        self._objective = objective
        self._depth = 0
        self._stopped = np.zeros(n, dtype=bool)
        self._missing = np.zeros(n)  # discounted steps since it was stopped
        self._worst = np.inf  # reward of all that was imagined

    def step(self, actions: Rows) -> None:
        """Take one action in each future."""
        wish, n = self._objective, len(self.obs)
        std = np.empty((n, 0))
        if wish.needs_std:
            next_obs, rewards, ended, std = self._model.step(self.obs, actions, return_std=True)
        else:
            next_obs, rewards, ended = self._model.step(self.obs, actions)
        next_obs, rewards = self._without_diverged(next_obs, rewards)
        if wish.reward is not None:
            rewards = column("reward", wish.reward(self.obs, actions, next_obs), n)
        if callable(wish.termination):
            ended = column("termination", wish.termination(self.obs, actions, next_obs), n) != 0
        elif wish.termination == "never":
            ended = np.zeros(n, dtype=bool)
        worth = wish.discount**self._depth
        if wish.max_std is not None:
            unsure = np.any(~(std <= np.asarray(wish.max_std)), axis=1)
            self._stop(unsure, rewards, worth)
        if wish.curiosity:
            scale = 1.0 if wish.std_scale is None else np.asarray(wish.std_scale)
            novelty = np.minimum(std / scale, LEAST_SURE).mean(axis=1)
            rewards = rewards + wish.curiosity * novelty
        self.gained[self.going] += worth * rewards[self.going]
        self.going &= ~ended
        self.obs = next_obs
        self._depth += 1

    def take(self, rows: npt.NDArray[np.intp]) -> Futures:
        """Some of the futures, any of them several times."""
        taken = copy(self)
        for name in ("obs", "gained", "going", "_stopped", "_missing"):
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def returns(self) -> Array:
        """What each future has gained, with what its end is worth."""
        wish = self._objective
        total = self.gained.copy()
        if wish.value is not None:
            values = column("value", wish.value(self.obs), len(total))
            values = wish.discount**self._depth * values
            total[self.going] += values[self.going]
            if self.going.any():
                total[self._stopped] += values[self.going].min()
        if self._stopped.any() and np.isfinite(self._worst):
            total += self._missing * self._worst
        return total

    def require_finite(self) -> None:
        """Raise `FloatingPointError` if the model has diverged in all futures."""
        if (self.gained == -np.inf).all():
            raise FloatingPointError(
                f"the world model has diverged: none of {len(self.gained)} imagined futures stayed "
                f"finite for {self._depth} steps. What it has learned is kept. Plan with a shorter "
                "horizon, or bound the observations of the environment."
            )

    def _without_diverged(self, next_obs: Rows, rewards: Array) -> tuple[Rows, Array]:
        """The same, but futures that are not finite any more stay where they are, and lose."""
        if _moderate(rewards) and _moderate(next_obs):
            return next_obs, rewards
        n = len(rewards)
        with np.errstate(invalid="ignore"):
            fine = (np.abs(next_obs) <= LARGEST).reshape(n, -1).all(axis=1)
            fine &= np.abs(rewards) <= LARGEST
        lost = ~fine & self.going
        self.gained[lost] = -np.inf
        self.going &= fine
        stay = fine.reshape(n, *[1] * (next_obs.ndim - 1))
        return np.where(stay, next_obs, self.obs), np.where(fine, rewards, 0.0)

    def _stop(self, unsure: npt.NDArray[np.bool_], rewards: Array, worth: float) -> None:
        self._stopped |= self.going & unsure
        self.going &= ~unsure
        self._missing[self._stopped] += worth
        self._worst = min(self._worst, np.min(rewards, initial=np.inf, where=self.going))


def column(name: str, values: npt.ArrayLike, n: int) -> Array:
    """The result of a user's function as one number per row; raises if it is anything else.

    >>> column("reward", 0.0, 3)
    Traceback (most recent call last):
    ...
    ValueError: the function reward returned an array of shape () for 3 rows: expected (3,), ...
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"the function {name} returned {array.dtype}: expected numbers.")
    if array.shape != (n,):
        raise ValueError(
            f"the function {name} returned an array of shape {array.shape} for {n} rows: expected "
            f"({n},), one number per row. It gets batches: obs[:, 0] is the first number of each."
        )
    if not _moderate(array):
        raise ValueError(
            f"the function {name} returned a number that is not finite, or larger than {LARGEST:g}."
        )
    return np.asarray(array, dtype=np.float64)


def _two_rows(space: spaces.Space[Any]) -> Rows:
    """Two elements of a space, as near to zero as it has them."""
    if isinstance(space, spaces.Discrete):
        return np.full(2, space.start, dtype=space.dtype)
    assert isinstance(space, spaces.Box)
    return np.stack([np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)] * 2)


def _moderate(values: Rows) -> bool:
    return bool(np.abs(values).max() <= LARGEST)  # not so for NaN
