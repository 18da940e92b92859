"""Imagination on the device: what SBX agents imagine with a `JaxWorldModel` never leaves JAX.

Start states and real rows are on the host, in the replay buffer, and go to the device: the former
before they are followed, the latter before minibatches are laid out. Actions, steps of the model,
units, normalisation and that layout are compiled functions, and SBX gets their results as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from losse.dyna.agents import Rows, is_stochastic, is_valued
from losse.dyna.imagination import Imagination
from losse.dyna.options import DynaOptions
from losse.dyna.pool import Pool
from losse.dyna.search import Visited
from losse.world.transitions import Transitions

if TYPE_CHECKING:
    from losse.dyna.buffer import DynaReplayBuffer
    from losse.world import JaxWorldModel
    from losse.world.jax.dynamics import Dynamics

Columns = tuple[jax.Array, ...]
"""Observations, actions, rewards, next observations and terminations."""


class DeviceColumn(NamedTuple):
    """A column of minibatches on the device, with what SBX asks of a tensor on the host."""

    array: jax.Array

    def numpy(self) -> jax.Array:
        """The array, which is where it was."""
        return self.array

    def long(self) -> DeviceColumn:
        """The same as whole numbers."""
        return DeviceColumn(self.array.astype(jnp.int32))


class Normalisation(NamedTuple):
    """How the agent sees observations and rewards: (x - shift) * factor, within a limit."""

    shift: Any
    factor: Any
    limit: Any
    reward_factor: Any
    reward_limit: Any

    def obs(self, obs: jax.Array) -> jax.Array:
        """Normalised observations."""
        return jnp.clip((obs - self.shift) * self.factor, -self.limit, self.limit)

    def rewards(self, rewards: jax.Array) -> jax.Array:
        """Normalised rewards."""
        return jnp.clip(rewards * self.reward_factor, -self.reward_limit, self.reward_limit)


class DeviceImagination(Imagination):
    """An agent of SBX and a `JaxWorldModel` that imagine, as arrays of JAX on its device."""

    model: JaxWorldModel

    def __init__(self, agent: Any, model: Any, options: DynaOptions) -> None:
        super().__init__(agent, model, options)
        space = agent.action_space
        bounds = (space.low, space.high) if isinstance(space, spaces.Box) else ()
        self._bounds = jax.device_put(tuple(np.asarray(bound, np.float32) for bound in bounds))

    def pool(self, pool: Pool) -> Pool:
        return DevicePool.restored(pool.state())

    def sizes(self, made: Transitions) -> Mapping[str, float]:
        found = jax.device_get(_sizes(made.next_obs, made.rewards))  # two numbers
        return dict(zip(("observations", "rewards"), map(float, found), strict=True))

    def minibatches(
        self,
        buffer: DynaReplayBuffer,
        made: Transitions,
        real: Transitions,
        imagined: npt.NDArray[np.bool_],
        normaliser: Any,
    ) -> Any:
        obs, actions, next_obs, *others = buffer.columns(real, normaliser)
        seen = [buffer.seen(rows, normaliser) for rows in (obs, next_obs)]
        places = np.empty(len(imagined), np.int32)
        places[imagined] = np.arange(len(made))
        places[~imagined] = len(made) + np.arange(len(real))
        given = jax.device_put(
            (
                [_single(column) for column in (seen[0], actions, seen[1], *others)],
                places,
                _normalisation(normaliser),
            )
        )
        columns = _minibatches(tuple(made), *given, self._bounds)
        return ReplayBufferSamples(*map(DeviceColumn, columns))

    def _followed(
        self, visited: Visited, starts: Rows, share: float, horizon: int, n: int
    ) -> Transitions:
        agent, policy = self.agent, self.agent.policy
        stochastic = is_stochastic(agent)
        given = jax.device_put(
            (
                _single(starts),
                np.uint32(visited.rng.integers(1 << 32)),
                np.float32(share),
                _normalisation(visited.normaliser),
            )
        )
        columns = _imagined(
            self.model.dynamics,
            _slim(policy.qf_state if is_valued(agent) else policy.actor_state),
            *given,
            self._bounds,
            choose=policy.sample_action if stochastic else policy.select_action,
            stochastic=stochastic,
            horizon=horizon,
            n=n,
        )
        return Transitions(*columns)


class DevicePool(Pool):
    """A `Pool` whose rows are on the device; which of them are drawn is decided on the host."""

    def draw(self, n: int, rng: np.random.Generator) -> Transitions:
        """Rows drawn uniformly, with repetition."""
        rows = jax.device_put(rng.integers(len(self), size=n, dtype=np.int32))
        return Transitions(**_taken(self._columns, rows))

    def _empty(self, column: Any) -> Any:
        # Python's own int64 and float64 are 32 bits on the device.
        dtype = jax.dtypes.canonicalize_dtype(column.dtype)
        return jax.device_put(np.zeros((self.capacity, *column.shape[1:]), dtype))

    def _put(self, rows: npt.NDArray[np.int64], columns: Mapping[str, Any]) -> None:
        given = jax.device_put((rows.astype(np.int32), dict(columns)))
        self._columns = _written(self._columns, *given)


@partial(jax.jit, static_argnames=("choose", "stochastic", "horizon", "n"))
def _imagined(
    dynamics: Dynamics,
    state: Any,
    starts: jax.Array,
    seed: jax.Array,
    share: jax.Array,
    normalisation: Normalisation | None,
    bounds: tuple[jax.Array, ...],
    *,
    choose: Callable[..., jax.Array],
    stochastic: bool,
    horizon: int,
    n: int,
) -> Columns:
    """``n`` rows of what follows from starts, in the environment's units.

    ``choose`` is the function of SBX from the policy's training state and observations, and a key
    if it is stochastic, to actions.
    """

    def act(obs: jax.Array, key: jax.Array) -> jax.Array:
        own, random, mix = jax.random.split(key, 3)
        seen = obs if normalisation is None else normalisation.obs(obs)
        if not bounds:
            greedy = choose(state, seen)
            drawn = jax.random.randint(random, greedy.shape, 0, dynamics.n_actions)
            keep = jax.random.uniform(mix, greedy.shape) < share
            return dynamics.first + jnp.where(keep, greedy, drawn)
        low, high = bounds
        actions = choose(state, seen, own) if stochastic else choose(state, seen)
        actions = jnp.clip(actions.reshape(len(obs), *low.shape), -1, 1)
        if not stochastic:
            keep = jax.random.uniform(mix, (len(obs), *[1] * low.ndim)) < share
            drawn = jax.random.uniform(random, actions.shape, minval=-1, maxval=1)
            actions = jnp.where(keep, actions, drawn)
        return low + 0.5 * (actions + 1) * (high - low)

    def step(carry: tuple[jax.Array, jax.Array], key: jax.Array) -> tuple[Any, Any]:
        obs, alive = carry
        actions = act(obs, key)
        next_obs, rewards, terminated = dynamics.step(obs, actions)
        row = (obs, actions, rewards, next_obs, terminated)
        return (next_obs, alive & ~terminated), (row, alive)

    keys = jax.random.split(jax.random.key(seed), 1 + horizon)
    alive = jnp.ones(len(starts), bool)
    _, (rows, alive) = jax.lax.scan(step, (starts, alive), keys[1:])
    columns: Columns = jax.tree.map(lambda column: column.reshape(-1, *column.shape[2:]), rows)
    if horizon == 1:
        return columns
    return jax.tree.map(lambda column: column[_chosen(alive.ravel(), n, keys[0])], columns)


def _chosen(alive: jax.Array, n: int, key: jax.Array) -> jax.Array:
    """``n`` of the rows that there are, in random order; once more where they are too few."""
    mix, again = jax.random.split(key)
    order = jnp.argsort(jnp.where(alive, jax.random.uniform(mix, alive.shape), 2.0))
    some = order[jax.random.randint(again, (n,), 0, alive.sum())]
    return jnp.where(jnp.arange(n) < alive.sum(), order[:n], some)


@jax.jit
def _minibatches(
    made: Columns,
    real: list[jax.Array],
    places: jax.Array,
    normalisation: Normalisation | None,
    bounds: tuple[jax.Array, ...],
) -> list[jax.Array]:
    """Imagined rows as the agent takes them, with real ones in between."""
    obs, actions, rewards, next_obs, terminated = made
    if bounds:
        low, high = bounds
        actions = (2 * (actions - low) / (high - low) - 1).reshape(len(actions), -1)
    else:
        actions = actions[:, None]
    if normalisation is not None:
        obs, next_obs = normalisation.obs(obs), normalisation.obs(next_obs)
        rewards = normalisation.rewards(rewards)
    columns = (obs, actions, next_obs, terminated[:, None], rewards[:, None])
    pairs = zip(columns, real, strict=True)
    return [jnp.concatenate([mine.astype(his.dtype), his])[places] for mine, his in pairs]


@jax.jit
def _sizes(next_obs: jax.Array, rewards: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.abs(next_obs).max(), jnp.abs(rewards).max()


@jax.jit
def _taken(columns: Mapping[str, jax.Array], rows: jax.Array) -> dict[str, jax.Array]:
    return {name: column[rows] for name, column in columns.items()}


@partial(jax.jit, donate_argnums=0)  # so that rows are written in place
def _written(
    columns: Mapping[str, jax.Array], rows: jax.Array, new: Mapping[str, jax.Array]
) -> dict[str, jax.Array]:
    return {name: column.at[rows].set(new[name]) for name, column in columns.items()}


def _single(rows: Any) -> Any:
    """Rows in the precision in which agents take them."""
    rows = np.asarray(rows)
    return rows.astype(np.float32 if rows.dtype.kind == "f" else np.int32)


def _slim(state: Any) -> Any:
    """A training state with what it takes to act alone."""
    parts = {"opt_state": None, "target_params": None}
    return state.replace(**{name: part for name, part in parts.items() if hasattr(state, name)})


def _normalisation(normaliser: Any) -> Normalisation | None:
    """The present statistics of a `VecNormalize`; None for none."""
    if normaliser is None:
        return None
    shift, factor, limit, reward_factor, reward_limit = 0.0, 1.0, np.inf, 1.0, np.inf
    if normaliser.norm_obs:
        seen = normaliser.obs_rms
        shift, factor = seen.mean, 1 / np.sqrt(seen.var + normaliser.epsilon)
        limit = normaliser.clip_obs
    if normaliser.norm_reward:
        reward_factor = 1 / np.sqrt(normaliser.ret_rms.var + normaliser.epsilon)
        reward_limit = normaliser.clip_reward
    parts = (shift, factor, limit, reward_factor, reward_limit)
    return Normalisation(*(np.asarray(part, np.float32) for part in parts))
