"""`Dynamics`: one imagined step as a pure function, for compiled loops over many rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from losse.jax.encoding import times
from losse.jax.model import Grids
from losse.scaling import LIMIT
from losse.world.known import Function, Known, PartlyKnown

Step = tuple[jax.Array, jax.Array, jax.Array]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["grids", "weights", "shift", "factor", "low", "high"],
    meta_fields=["n_actions", "first", "per_action", "reward", "termination"],
)
@dataclass(frozen=True)
class Dynamics:
    """What a `JaxWorldModel` knows at one moment: a pytree that never changes.

    It goes into `jax.jit`, `vmap` and `scan`, as an argument or inside a carry.

    Attributes
    ----------
    grids
        The encoder, of scaled inputs.
    weights
        W; with one learner per action, those of all actions side by side.
    shift, factor
        A state (and a continuous action) becomes (x - shift) * factor, clipped to [-3, 3].
    low, high
        Bounds of observations.
    n_actions, first
        Number of discrete actions, 0 for continuous ones, and the first of them.
    per_action
        Whether each discrete action has weights of its own.
    reward, termination
        As in `WorldModel`.
    """

    grids: Grids
    weights: jax.Array
    shift: jax.Array
    factor: jax.Array
    low: jax.Array
    high: jax.Array
    n_actions: int
    first: int
    per_action: bool
    reward: Known
    termination: str | Function

    def step(self, obs: jax.Array, actions: jax.Array) -> Step:
        """Next observations, rewards and terminations of rows, in the environment's units.

        Parameters
        ----------
        obs
            Observations, (n, *shape).
        actions
            Actions, (n,) if they are discrete, else (n, *shape).
        """
        n = len(obs)
        states = obs.reshape(n, -1)
        targets = self._targets(states, actions)
        width = states.shape[1]
        changed = jnp.clip(states + targets[:, :width], self.low, self.high)
        next_obs = changed.reshape(obs.shape)
        if isinstance(self.reward, PartlyKnown):
            part = jnp.asarray(self.reward.part(obs, actions, next_obs), targets.dtype)
            rewards = targets[:, width] + part
        elif callable(self.reward):
            rewards = jnp.asarray(self.reward(obs, actions, next_obs), targets.dtype)
        else:
            rewards = targets[:, width]
        if callable(self.termination):
            terminated = jnp.asarray(self.termination(obs, actions, next_obs), bool)
        elif self.termination == "never":
            terminated = jnp.zeros(n, bool)
        else:
            terminated = targets[:, -1] > 0.5
        return next_obs, rewards, terminated

    def _targets(self, states: jax.Array, actions: jax.Array) -> jax.Array:
        """Changes of states, then rewards and terminations if they are learned."""
        if not self.n_actions:
            flat = actions.reshape(len(states), -1)
            return times(self.grids, self._scaled(jnp.hstack([states, flat])), self.weights)
        choices = actions - self.first
        inputs = self._scaled(states)
        if not self.per_action:
            hot = jax.nn.one_hot(choices, self.n_actions, dtype=inputs.dtype)
            inputs = jnp.hstack([inputs, hot * math.sqrt(self.n_actions)])
            return times(self.grids, inputs, self.weights)
        every = times(self.grids, inputs, self.weights).reshape(len(states), self.n_actions, -1)
        return jnp.take_along_axis(every, choices[:, None, None], axis=1)[:, 0]

    def _scaled(self, rows: jax.Array) -> jax.Array:
        return jnp.clip((rows - self.shift) * self.factor, -LIMIT, LIMIT)
