"""`DynaReplayBuffer`: a replay buffer that also hands out what a world model imagines."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from losse.dyna import storage
from losse.dyna.agents import require_healthy
from losse.dyna.imagination import Sanity, imagine
from losse.dyna.meter import Meter, one_step_errors
from losse.dyna.planning import Planning, resolved_share
from losse.dyna.search import require_suitable
from losse.dyna.units import Rows, Transitions, Units
from losse.dyna.visited import Visited
from losse.world import WorldModel
from losse.world.spaces import flat


class Bond(NamedTuple):
    """Whom a buffer works for. It is not saved with the buffer."""

    agent: Any
    model: WorldModel | None


class DynaReplayBuffer(ReplayBuffer):
    """The replay buffer of an agent that learns from real and imagined transitions.

    Real transitions go in as usual. Every ``update_every`` of them are learned by the world model.
    What comes out is laid out minibatch by minibatch, whether the agent draws all minibatches of a
    training call at once, as SBX does, or one by one. All imagined transitions of a training call
    are computed together when the first is asked for.

    A buffer must be bound to its agent and a world model before it is used: `make_dyna` does this,
    and so does a `DynaCallback` when training starts. It is saved without them.

    Parameters
    ----------
    buffer_size, observation_space, action_space, device, n_envs, optimize_memory_usage, \
handle_timeout_termination
        As in Stable-Baselines3. ``optimize_memory_usage`` is refused: it loses the true next
        observation at the end of an episode.
    planning_steps, update_every, real_share, search_control, horizon, greedy_share
        As in `make_dyna`.
    seed
        Of the choices in imagination; by default the agent's.

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
        planning_steps: int = 16,
        update_every: int = 25,
        real_share: float | str = "auto",
        search_control: str = "uniform",
        horizon: int = 1,
        greedy_share: float = 0.5,
        seed: int | None = None,
    ) -> None:
        discrete = flat("action_space", action_space).discrete
        flat("observation_space", observation_space)
        share = resolved_share(real_share, discrete)
        planning = Planning(
            planning_steps, update_every, share, search_control, horizon, greedy_share
        )
        require_suitable(search_control, observation_space)
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
        if self.buffer_size * n_envs < update_every:
            raise ValueError(
                f"update_every={update_every} is more than the {self.buffer_size * n_envs} "
                "transitions that the buffer holds: choose a larger buffer_size."
            )
        self.planning = planning
        self.units = Units(observation_space, action_space)
        self.meter = Meter()
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._sanity = Sanity()
        self._unlearned = 0
        self._bond: Bond | None = None
        self._plans: list[Rows] = []
        self._drawn = 0

    def bind(self, agent: Any, world_model: WorldModel | None) -> None:
        """Say whose buffer this is, and which world model learns and imagines.

        None for a world model makes an ordinary replay buffer, which needs ``planning_steps=0``.
        """
        if getattr(agent, "n_steps", 1) != 1:
            raise ValueError(
                f"n_steps={agent.n_steps} is not possible with Dyna: imagined transitions are "
                "single steps, and so must be the real ones beside them. Use n_steps=1."
            )
        if world_model is None and self.planning.planning_steps > 0:
            raise ValueError(
                f"planning_steps={self.planning.planning_steps} needs a world model: give one, or "
                "choose planning_steps=0."
            )
        for name in ("observation_space", "action_space"):
            mine, theirs = getattr(self, name), getattr(world_model, name, getattr(self, name))
            if mine != theirs:
                raise ValueError(
                    f"the world model's {name} is {theirs}, but the agent's is {mine}: make the "
                    "model with the spaces of the agent."
                )
        if self._seed is None and self.size() == 0:
            self._rng = np.random.default_rng(agent.seed)
        self._bond = Bond(agent, world_model)

    @property
    def bound(self) -> bool:
        """Whether there are an agent and, if it plans, a world model."""
        return self._bond is not None

    @property
    def world_model(self) -> WorldModel | None:
        """The model that learns from this buffer, None without one."""
        return self._bond.model if self._bond else None

    def add(
        self, obs: Rows, next_obs: Rows, action: Rows, reward: Rows, done: Rows, infos: Any
    ) -> None:
        """Store one step of all environments; let the world model learn when it is time."""
        self._require_bond()
        super().add(obs, next_obs, action, reward, done, infos)
        self._forget_plans()
        self._unlearned += self.n_envs
        if self._unlearned >= self.planning.update_every:
            self.flush()

    def flush(self) -> None:
        """Let the world model learn all transitions that it has not learned yet."""
        agent, model = self._require_bond()
        require_healthy(agent)
        last = self.pos * self.n_envs
        rows = np.arange(last - self._unlearned, last) % (self.buffer_size * self.n_envs)
        if model is not None and len(rows):
            happened = self.transitions(rows)
            began = time.perf_counter()
            if model.n_transitions:
                self.meter.errors = one_step_errors(model, happened)
            model.update(*happened)
            self.meter.update_seconds += time.perf_counter() - began
            self._sanity.see(happened)
        self._unlearned = 0
        if getattr(agent, "_logger", None) is not None:
            self.meter.log(agent.logger)

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """One minibatch, or several of the agent's size behind each other, real and imagined."""
        agent, model = self._require_bond()
        size = agent.batch_size if batch_size % agent.batch_size == 0 else batch_size
        count = batch_size // size
        imagined = self.planning.imagined(self._drawn, count, size)
        if model is None or model.n_transitions == 0:
            imagined[:] = False
        n_imagined = int(imagined.sum())
        self.meter.imagined_rows += n_imagined
        self.meter.real_rows += batch_size - n_imagined
        if n_imagined == 0:
            self._drawn += count
            return super().sample(batch_size, env)
        columns = self._planned(n_imagined, env)
        self._drawn += count
        if n_imagined < batch_size:
            real = self._columns(self.transitions(self._any(batch_size - n_imagined)), env)
            columns = [_laid_out(imagined, *pair) for pair in zip(columns, real, strict=True)]
        return ReplayBufferSamples(*map(self.to_torch, columns))

    def transitions(self, rows: npt.NDArray[np.int64]) -> Transitions:
        """Stored transitions in the environment's units; row = step * n_envs + environment."""
        step, env = np.divmod(rows, self.n_envs)
        return Transitions(
            self.units.model_obs(self.observations[step, env]),
            self.units.model_actions(self.actions[step, env]),
            self.rewards[step, env],
            self.units.model_obs(self.next_observations[step, env]),
            self.dones[step, env] * (1 - self.timeouts[step, env]) > 0,
        )

    def obs(self, rows: npt.NDArray[np.int64]) -> Rows:
        """Stored observations in the environment's units."""
        step, env = np.divmod(rows, self.n_envs)
        return self.units.model_obs(self.observations[step, env])

    def ended(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether an episode ended with these rows, for whatever reason."""
        step, env = np.divmod(rows, self.n_envs)
        return self.dones[step, env] > 0

    def _planned(self, n: int, env: Any) -> list[Rows]:
        """The next imagined rows; when there are none left, those of a whole training call."""
        agent, model = self._require_bond()
        assert model is not None
        if not self._plans or len(self._plans[0]) < n:
            began = time.perf_counter()
            call = agent.gradient_steps if agent.gradient_steps > 0 else 1
            rest = self.planning.imagined(self._drawn, max(0, call - self._drawn), agent.batch_size)
            visited = Visited(self, agent, env, self._rng)
            rows = max(n, int(rest.sum()))
            made = imagine(agent, model, self.planning, self.units, visited, rows)
            self._sanity.require(made, model)
            self._plans = self._columns(made, env)
            self.meter.imagination_seconds += time.perf_counter() - began
        taken = [column[:n] for column in self._plans]
        self._plans = [column[n:] for column in self._plans]
        return taken

    def _columns(self, made: Transitions, env: Any) -> list[Rows]:
        """Transitions as agents take them: normalised by ``env``, never cut off by a time limit."""
        return [
            self._seen(made.obs, env),
            self.units.buffer_actions(made.actions),
            self._seen(made.next_obs, env),
            made.terminated.astype(np.float32)[:, None],
            self._normalize_reward(made.rewards.astype(np.float32)[:, None], env),
        ]

    def _seen(self, obs: Rows, env: Any) -> Rows:
        return np.asarray(self._normalize_obs(self.units.buffer_obs(obs), env))

    def _any(self, n: int) -> npt.NDArray[np.int64]:
        return self._rng.integers(self.size() * self.n_envs, size=n)

    def _forget_plans(self) -> None:
        """A new training call begins."""
        self._plans = []
        self._drawn = 0

    def _require_bond(self) -> Bond:
        if self._bond is None:
            raise RuntimeError(
                "this DynaReplayBuffer has no agent and no world model yet: make the agent with "
                "make_dyna, pass a DynaCallback to learn, or read a saved run with load_run."
            )
        return self._bond

    def __getstate__(self) -> dict[str, Any]:
        """Without the agent and the world model, and without places that are empty still."""
        return storage.packed(vars(self) | {"_bond": None, "_plans": [], "_drawn": 0})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(storage.unpacked(state))


def _laid_out(imagined: npt.NDArray[np.bool_], made: Rows, real: Rows) -> Rows:
    rows = np.empty((len(imagined), *made.shape[1:]), dtype=np.result_type(made, real))
    rows[imagined], rows[~imagined] = made, real
    return rows
