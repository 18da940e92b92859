"""Replay buffer that also hands out what a world model imagines."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from losse.dyna.agents import Rows
from losse.dyna.conversion import Conversion, require_observations
from losse.dyna.divergence import DivergenceGuard, require_healthy
from losse.dyna.imagination import Imagination, imagination_of, require_std
from losse.dyna.meter import Meter
from losse.dyna.options import DynaOptions
from losse.dyna.pool import Pool
from losse.dyna.search import Visited, require_suitable
from losse.world import WorldModel
from losse.world.evaluation import change_error_after, one_step_errors
from losse.world.transitions import Transitions

_UNSAVED = (
    "conversion", "_agent", "_model", "_imagination", "_guard", "_plans", "_drawn", "_pool",
)  # fmt: skip
LATER = 5
"""Imagined steps of ``later_change_error``."""
_COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class DynaReplayBuffer(ReplayBuffer):
    """Replay buffer of an agent that learns from real and imagined transitions.

    Real transitions go in as usual. Every ``update_every`` of them are learned by the world model.
    What comes out is laid out minibatch by minibatch, whether the agent draws all minibatches of a
    training call at once, as SBX does, or one by one. All imagined transitions of a training call
    are computed together when the first is asked for; or they are drawn from a `Pool`, which gets
    new ones after each update of the model.

    A training call begins with the first minibatch after a real step. The buffer must find that out
    by itself: agents tell their callbacks, but not their buffers, and an agent of `make_dyna`
    works without any callback. They always collect at least one step between two training calls,
    so `add` says when one is over.

    A buffer is bound to its agent and a world model by `make_dyna`, by a `DynaCallback` when
    training starts, or by `load_run`. It is saved without them. Until it is bound it is an ordinary
    replay buffer, and warns that nothing is imagined: so is that of an agent which was read with
    `load`. A model that is bound later learns all that the buffer has collected meanwhile.

    Parameters
    ----------
    buffer_size, observation_space, action_space, device, n_envs, optimize_memory_usage, \
handle_timeout_termination
        As in Stable-Baselines3. ``optimize_memory_usage`` is refused: it loses the true next
        observation at the end of an episode.
    options
        `DynaOptions`; its fields can also be given one by one, as ``planning_steps=4``.
    seed
        Seed of the choices in imagination; by default the agent's.

    Attributes
    ----------
    meter
        Time that the world model has taken, and numbers of real and imagined rows handed out.

    Examples
    --------
    >>> from stable_baselines3 import DQN
    >>> from losse.dyna import DynaCallback, DynaReplayBuffer
    >>> agent = DQN(
    ...     "MlpPolicy", "CartPole-v1", gradient_steps=5,
    ...     replay_buffer_class=DynaReplayBuffer, replay_buffer_kwargs={"planning_steps": 4},
    ... )
    >>> agent = agent.learn(120, callback=DynaCallback("losse"))
    >>> agent.replay_buffer.world_model.n_transitions
    120
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        options: DynaOptions | None = None,
        seed: int | None = None,
        **fields: Any,
    ) -> None:
        options, unknown = DynaOptions.taken_from(fields, options)
        if unknown:
            raise TypeError(
                f"{next(iter(unknown))}={next(iter(unknown.values()))!r} is not an option of "
                f"DynaReplayBuffer: use {', '.join(asdict(options))}."
            )
        require_observations(observation_space)
        discrete = isinstance(action_space, spaces.Discrete)
        require_suitable(options.search_control, observation_space)
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage=True loses the last observation of each episode, which a "
                "world model must see: leave it out."
            )
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            handle_timeout_termination=handle_timeout_termination,
        )
        if self.capacity < options.update_every:
            raise ValueError(
                f"update_every={options.update_every} is more than the {self.capacity} "
                "transitions that the buffer holds: choose a larger buffer_size."
            )
        self.options = options.resolved(discrete=discrete)
        self.conversion = Conversion(observation_space, action_space)
        self.meter = Meter()
        self._agent: Any = None
        self._model: WorldModel | None = None
        self._imagination: Imagination | None = None
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._guard = DivergenceGuard()
        self._unlearned = 0
        self._warned = False
        self._pool = Pool(int(self.options.pool_steps) * self.options.pool_rows)
        self._unimagined = 0  # real transitions since the pool was renewed
        self.end_training_call()

    def bind(self, agent: Any, world_model: WorldModel | None) -> None:
        """Bind the buffer to its agent, and to the world model that learns and imagines.

        None for a world model makes an ordinary replay buffer, which needs ``planning_steps=0``.
        """
        if getattr(agent, "n_steps", 1) != 1:
            raise ValueError(
                f"n_steps={agent.n_steps} is not possible with Dyna: imagined transitions are "
                "single steps, and so must be the real ones beside them. Use n_steps=1."
            )
        if world_model is None and self.options.planning_steps > 0:
            raise ValueError(
                f"planning_steps={self.options.planning_steps} needs a world model: give one, or "
                "choose planning_steps=0."
            )
        if world_model is not None and self.options.sure_share is not None:
            require_std(world_model, self.options.sure_share)
        for name in ("observation_space", "action_space"):
            mine, theirs = getattr(self, name), getattr(world_model, name, getattr(self, name))
            if mine != theirs:
                raise ValueError(
                    f"the world model's {name} is {theirs}, but the agent's is {mine}: make the "
                    "model with the spaces of the agent."
                )
        imagination = None
        if world_model is not None:
            imagination = imagination_of(agent, world_model, self.options)
            self._pool = imagination.pool(self._pool)
        if self._seed is None and self.size() == 0:
            self._rng = np.random.default_rng(agent.seed)
        self._agent, self._model, self._imagination = agent, world_model, imagination
        if world_model is not None:
            world_model.use_past(self.past)

    @property
    def bound(self) -> bool:
        """Whether the buffer has an agent and, if that plans, a world model."""
        return self._agent is not None

    @property
    def capacity(self) -> int:
        """Largest number of transitions in the buffer."""
        return self.buffer_size * self.n_envs

    @property
    def world_model(self) -> WorldModel | None:
        """The model that learns from this buffer, None without one."""
        return self._model

    def add(
        self, obs: Rows, next_obs: Rows, action: Rows, reward: Rows, done: Rows, infos: Any
    ) -> None:
        """Store one step of all environments; let the world model learn when it is time."""
        self._warn_if_alone()
        super().add(obs, next_obs, action, reward, done, infos)
        self.end_training_call()
        self._unlearned = min(self._unlearned + self.n_envs, self.capacity)
        self._unimagined += self.n_envs
        if self.bound and self._unlearned >= self.options.update_every:
            self.flush()

    def end_training_call(self) -> None:
        """Drop what was imagined: the next minibatch is the first of a new training call."""
        self._plans: Transitions | None = None
        self._drawn = 0

    def flush(self) -> None:
        """Let the world model learn all transitions that it has not learned yet."""
        if not self.bound:
            return
        require_healthy(self._agent)
        last = self.pos * self.n_envs
        rows = np.arange(last - self._unlearned, last) % self.capacity
        model = self._model
        if model is not None and len(rows):
            happened = self.transitions(rows)
            if model.n_transitions:
                later = change_error_after(model, happened, LATER) if self.n_envs == 1 else None
                self.meter.errors = one_step_errors(model, happened)
                self.meter.errors |= {} if later is None else {"later_change_error": later}
            with self.meter.timing("update_seconds"):
                model.update(*happened)
            self._guard.see(happened)
        self._unlearned = 0
        logger = getattr(self._agent, "logger", None)  # there is none before training
        if logger is not None:
            self.meter.log(logger)

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """One minibatch, or several of the agent's size behind each other, real and imagined."""
        agent, model = self._agent, self._model
        whole = agent is not None and batch_size % agent.batch_size == 0
        size = agent.batch_size if whole else batch_size
        count = batch_size // size
        imagined = self.options.imagined(self._drawn, count, size)
        if model is None or model.n_transitions == 0:
            imagined[:] = False
        n_imagined = int(imagined.sum())
        self.meter.imagined_rows += n_imagined
        self.meter.real_rows += batch_size - n_imagined
        if n_imagined == 0:
            self._drawn += count
            return super().sample(batch_size, env)
        assert self._imagination is not None
        made = self._planned(n_imagined, env)
        self._drawn += count
        real = self.transitions(self._any(batch_size - n_imagined))
        return self._imagination.minibatches(self, made, real, imagined, env)

    def transitions(self, rows: npt.NDArray[np.int64]) -> Transitions:
        """Stored transitions in the environment's units; row = step * n_envs + environment."""
        step, env = np.divmod(rows, self.n_envs)
        return Transitions(
            self.conversion.model_obs(self.observations[step, env]),
            self.conversion.model_actions(self.actions[step, env]),
            self.rewards[step, env],
            self.conversion.model_obs(self.next_observations[step, env]),
            self.dones[step, env] * (1 - self.timeouts[step, env]) > 0,
        )

    def past(self, n: int) -> Transitions | None:
        """The n transitions of this buffer, oldest first; None if it has not exactly so many."""
        if n != self.size() * self.n_envs:
            return None
        oldest = self.pos * self.n_envs if self.full else 0
        return self.transitions((oldest + np.arange(n)) % self.capacity)

    def obs(self, rows: npt.NDArray[np.int64]) -> Rows:
        """Stored observations in the environment's units."""
        step, env = np.divmod(rows, self.n_envs)
        return self.conversion.model_obs(self.observations[step, env])

    def ended(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether an episode ended with these rows, for whatever reason."""
        step, env = np.divmod(rows, self.n_envs)
        return self.dones[step, env] > 0

    def _planned(self, n: int, env: Any) -> Transitions:
        """The next imagined rows: from the pool, or from those of a whole training call."""
        if self._pool.capacity:
            if not len(self._pool) or self._unimagined >= self.options.update_every:
                rows = self.options.pool_rows * min(self._unimagined, self.options.update_every)
                self._pool.add(self._imagined(max(1, rows), env))
                self._unimagined = 0
            return self._pool.draw(n, self._rng)
        plans = self._plans
        if plans is None or len(plans) < n:
            agent = self._agent
            call = agent.gradient_steps if agent.gradient_steps > 0 else 1
            rest = self.options.imagined(self._drawn, max(0, call - self._drawn), agent.batch_size)
            plans = self._imagined(max(n, int(rest.sum())), env)
        if len(plans) == n:
            self._plans = None
            return plans
        self._plans = plans.take(slice(n, None))
        return plans.take(slice(n))

    def _imagined(self, n: int, env: Any) -> Transitions:
        """Rows that are imagined now."""
        assert self._model is not None
        assert self._imagination is not None
        with self.meter.timing("imagination_seconds"):
            visited = Visited(self, self._agent, env, self._rng)
            made = self._imagination.imagine(visited, n)
            self._guard.require(self._imagination.sizes(made), self._model)
        return made

    def columns(self, made: Transitions, env: Any) -> list[Rows]:
        """Transitions as the buffer keeps them, never cut off by a time limit."""
        return [
            self.conversion.buffer_obs(made.obs),
            self.conversion.buffer_actions(made.actions),
            self.conversion.buffer_obs(made.next_obs),
            made.terminated.astype(np.float32)[:, None],
            self._normalize_reward(made.rewards.astype(np.float32)[:, None], env),
        ]

    def samples(self, columns: list[Rows], env: Any) -> Any:
        """Columns as agents take them, observations normalised by ``env``."""
        obs, actions, next_obs, *others = columns
        columns = [self.seen(obs, env), actions, self.seen(next_obs, env), *others]
        return ReplayBufferSamples(*map(self.to_torch, columns))

    def seen(self, obs: Rows, normaliser: Any) -> Any:
        """Observations as the agent sees them; ``normaliser`` is its `VecNormalize`, if any."""
        return obs if normaliser is None else normaliser.normalize_obs(obs)

    def _any(self, n: int) -> npt.NDArray[np.int64]:
        return self._rng.integers(self.size() * self.n_envs, size=n)

    def _warn_if_alone(self) -> None:
        if self.bound or self.options.planning_steps == 0 or self._warned:
            return
        self._warned = True
        warnings.warn(
            "this agent has no world model, so it learns from real transitions alone. load_run "
            "reads an agent with its model and replay buffer; learn(..., callback="
            'DynaCallback("losse")) gives it a new model.',
            stacklevel=2,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, without agent and model, and without rows that are empty still."""
        state = vars(self) | {"options": asdict(self.options), "meter": asdict(self.meter)}
        state |= {"guard": self._guard.largest, "pool": self._pool.state()}
        for name in _UNSAVED:
            del state[name]
        if not self.full:
            state |= {name: state[name][: self.pos].copy() for name in _COLUMNS}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        self.options = DynaOptions(**state.pop("options"))
        self.meter = Meter(**state.pop("meter"))
        self._guard = DivergenceGuard(state.pop("guard"))
        self._pool = Pool.restored(state.pop("pool"))
        self.__dict__.update(state)
        self.conversion = Conversion(self.observation_space, self.action_space)
        self._agent = self._model = self._imagination = None
        self.end_training_call()
        for name in () if self.full else _COLUMNS:
            filled = state[name]
            whole = np.zeros((self.buffer_size, *filled.shape[1:]), dtype=filled.dtype)
            whole[: len(filled)] = filled
            setattr(self, name, whole)
