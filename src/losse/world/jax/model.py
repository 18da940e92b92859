"""`JaxWorldModel`: the paper's world model in JAX, whose imagined steps stay on the device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.encoders import Encoder, LosseEncoder
from losse.ftl import FTLRegressor
from losse.ftl.kept_rows import Rows
from losse.ftl.settings import Settings
from losse.jax.model import precision
from losse.typing import Array
from losse.world.jax.dynamics import Dynamics
from losse.world.jax.learner import JaxLearner, grids_of
from losse.world.known import Function, Known, PartlyKnown
from losse.world.losse.learners import PLANE, paper
from losse.world.losse.model import LosseWorldModel

LARGEST = 1e15
"""Largest number that is learned: sums of squares of more leave the range of single precision."""


class JaxWorldModel(LosseWorldModel):
    """A world model on `losse.jax`, for agents that imagine inside compiled programs.

    It is the `LosseWorldModel` of the paper's grids, learned by Algorithm 2 in JAX's precision:
    same inputs, same encoder, same numbers but for rounding. What it knows is a pytree, and its
    step a pure function: see `dynamics`. `update`, `step`, `rollout`, `save`, `load`, `like` and
    `merge` are those of `LosseWorldModel`; ``return_std`` is refused.

    Parameters
    ----------
    observation_space
        A `Box` of real numbers.
    action_space
        `Discrete`, or a `Box` of real numbers.
    termination, reward
        As in `WorldModel`. Functions must be such that JAX can compile them: written with
        `jax.numpy`, or with operators and methods of arrays alone.
    regressor
        An `FTLRegressor` that is not fitted, with a `LosseEncoder`, a number as ridge and no
        discount. ``"paper"``: as in `LosseWorldModel`. None: the paper's 30 grids with a ridge of
        1e-4 for no more than two inputs, else 60 coarser grids beside the inputs themselves.
        Its solver is Algorithm 2, and its precision that of JAX, whatever it says.
    per_action, warm_up, seed
        As in `LosseWorldModel`.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import JaxWorldModel
    >>> model = JaxWorldModel(Box(0, 1, (2,)), Discrete(2), termination="never")
    >>> rng = np.random.default_rng(0)
    >>> obs, actions = rng.uniform(0.1, 0.9, (1000, 2)), rng.integers(0, 2, 1000)
    >>> next_obs = obs + np.where(actions == 0, 0.1, -0.1)[:, None]
    >>> model.update(obs, actions, np.ones(1000), next_obs, np.zeros(1000, dtype=bool))
    >>> step = jax.jit(lambda dynamics, obs, actions: dynamics.step(obs, actions))
    >>> next_obs, rewards, terminated = step(model.dynamics, jnp.full((2, 2), 0.5), jnp.arange(2))
    >>> np.asarray(next_obs).round(2)
    array([[0.6, 0.6],
           [0.4, 0.4]], dtype=float32)
    """

    kind = "losse.JaxWorldModel"
    has_std = False
    on_device = True
    learner = JaxLearner

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
        _require_spaces(observation_space, action_space)
        super().__init__(
            observation_space,
            action_space,
            termination=termination,
            reward=reward,
            regressor=regressor,
            per_action=per_action,
            warm_up=warm_up,
            seed=seed,
        )
        said = reward.part if isinstance(reward, PartlyKnown) else reward
        for name, rule in (("reward", said), ("termination", termination)):
            if callable(rule):
                _require_compilable(name, rule, observation_space, action_space)
        self._dynamics: Dynamics | None = None
        self._dynamics_of: list[Any] = []

    @property
    def dynamics(self) -> Dynamics:
        """What the model knows now, as a pytree with a pure function `step`.

        It stays as it is when the model learns on.
        """
        with self.lock:
            weights = [learner.model.weights for learner in self.learners.started.values()]
            known = [self.inputs, *weights]
            same = len(known) == len(self._dynamics_of) and all(
                mine is theirs for mine, theirs in zip(known, self._dynamics_of, strict=True)
            )
            if self._dynamics is None or not same:
                self._dynamics, self._dynamics_of = self._new_dynamics(), known
            return self._dynamics

    def _new_dynamics(self) -> Dynamics:
        started = self.learners.started
        some = next(iter(started.values()), None)
        grids = grids_of(self._encoder()) if some is None else some.model.grids
        real = precision(None)
        none = jax.device_put(np.zeros((grids.dimension, self._n_targets), real))
        n_learners = self.actions.width if self.per_action else 1
        every = [started[k].model.weights if k in started else none for k in range(n_learners)]
        observed, actions = self.observation_space, self.action_space
        assert isinstance(observed, spaces.Box)
        scaling = self.inputs.scaling
        numbers = (scaling.shift, scaling.factor, observed.low.ravel(), observed.high.ravel())
        with np.errstate(over="ignore"):  # bounds beyond single precision are none
            shift, factor, low, high = (jax.device_put(part.astype(real)) for part in numbers)
        n_actions = first = 0
        if isinstance(actions, spaces.Discrete):
            n_actions, first = int(actions.n), int(actions.start)
        return Dynamics(
            grids=grids,
            weights=jnp.hstack(every),
            shift=shift,
            factor=factor,
            low=low,
            high=high,
            n_actions=n_actions,
            first=first,
            per_action=self.per_action,
            reward=self.reward,
            termination=self.termination,
        )

    def _encoder(self) -> Encoder:
        """The encoder that all learners have: it depends on its seed alone."""
        X = np.zeros((2, self.inputs.width))
        return self.learners.settings.fitted_encoder(Rows(X, X, np.ones(2)))

    def _settings_of(self, regressor: Any, width: int, seed: int) -> Settings:
        if regressor is None:
            regressor = recommended(width)
        settings = super()._settings_of(regressor, width, seed)
        _require_functional(settings)
        return settings

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        largest = max(np.abs(states).max(), np.abs(targets).max())
        if largest > LARGEST:
            raise ValueError(
                f"a transition contains, or changes by, {largest:.3g}: JaxWorldModel learns "
                f"numbers up to {LARGEST:g}, in single precision. Scale the environment's numbers, "
                "or use LosseWorldModel."
            )
        super()._learn(states, actions, targets)


def recommended(n_inputs: int) -> FTLRegressor:
    """The model that `JaxWorldModel` uses unless it is told otherwise.

    In the plane the paper's grids, as in `LosseWorldModel`. With more inputs, coarser grids beside
    the inputs themselves generalise from fewer rows.
    """
    if n_inputs <= PLANE:
        return paper().set_params(ridge=1e-4)
    encoder = LosseEncoder(60, n_bins=4, grid_dim=2, linear=True)
    return FTLRegressor(encoder, solver="sparse", ridge=1e-3)


def _require_functional(settings: Settings) -> None:
    """Raise unless `losse.jax` can learn with such settings."""
    encoder = settings.encoder
    if type(encoder) is not LosseEncoder or encoder.linear not in (False, True):
        raise TypeError(
            f"regressor.encoder={encoder!r} has no functional form: use a LosseEncoder whose "
            "linear is True or False, or world_model='losse'."
        )
    for name, fits, remedy in (
        ("ridge", settings.ridge != "auto", "give a number, such as 1e-4"),
        ("solver", settings.solver in ("auto", "sparse"), "use 'sparse'"),
        ("discount", settings.discount == 1.0, "use 1"),
        ("past", settings.past is None, "use None"),
        ("center", settings.center is not True, "use False"),
    ):
        if not fits:
            raise ValueError(
                f"regressor.{name}={getattr(settings, name)!r} has no functional form: {remedy}, "
                "or LosseWorldModel (world_model='losse')."
            )


def _require_spaces(observation_space: Any, action_space: Any) -> None:
    """Raise `TypeError` for spaces that a compiled step does not know."""
    for name, space, others in (
        ("observation_space", observation_space, ()),
        ("action_space", action_space, (spaces.Discrete,)),
    ):
        real = isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f"
        if not real and not isinstance(space, others):
            known = " or ".join(["a Box of real numbers", *(kind.__name__ for kind in others)])
            raise TypeError(
                f"{name}={space!r} is not possible in JaxWorldModel: it takes {known}. Wrap the "
                "environment, for example in gymnasium.wrappers.FlattenObservation, or use "
                "LosseWorldModel (world_model='losse')."
            )


def _require_compilable(
    name: str, rule: Function, observation_space: Any, action_space: Any
) -> None:
    """Raise unless JAX can compile a function of (obs, actions, next_obs)."""
    n, real = 2, precision(None)
    obs = np.zeros((n, *observation_space.shape), real)
    chosen = np.int32 if isinstance(action_space, spaces.Discrete) else real
    actions = np.zeros((n, *action_space.shape), chosen)
    try:
        found = jax.eval_shape(lambda *given: jnp.asarray(rule(*given)), obs, actions, obs).shape
    except Exception as error:
        raise TypeError(
            f"{name}={rule!r} cannot be compiled by JAX ({type(error).__name__}): write it with "
            "jax.numpy instead of numpy and without if, or use LosseWorldModel "
            "(world_model='losse')."
        ) from error
    if found != (n,):
        raise ValueError(
            f"{name}={rule!r} returns an array of shape {found} for {n} rows: return ({n},)."
        )
