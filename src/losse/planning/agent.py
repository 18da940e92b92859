"""`PlanningAgent`: learns a world model as it goes, and acts by planning in it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import VecEnv

from losse.checks import check_count
from losse.planning import checkpoint
from losse.planning.discrete import uniform
from losse.planning.meter import Meter
from losse.planning.objective import Function, Objective
from losse.planning.planner import Plan, Planner
from losse.planning.registry import make_planner, model_for
from losse.scaling import RunningMoments
from losse.storage.state import State, StateReader, nested
from losse.world import Transitions, WorldModel
from losse.world.evaluation import one_step_errors

Rows = npt.NDArray[Any]


class PlanningAgent(BaseAlgorithm):
    """An agent without a policy: it learns a world model online, and plans every action in it.

    It has the habits of Stable-Baselines3: `learn` with callbacks and progress bar, `predict`,
    `save`, `load`, logger and TensorBoard; `evaluate_policy` takes it. A new task is a new reward:
    `set_reward`.

    Parameters
    ----------
    env
        A Gymnasium environment, its id, or a `VecEnv` without `VecNormalize`: a world model scales
        by itself. The actions of several environments are planned one after the other.
    world_model
        ``"losse"``, one of the neural baselines ``"full-replay"``, ``"online"``, ``"si"``,
        ``"coreset"``, ``"oracle"`` for the truth about an environment whose rules are known, or a
        `WorldModel`. ``"losse"`` is here one whose predictions take about a microsecond: see
        `losse.planning.registry.planning_regressor`.
    planner
        ``"icem"``, ``"cem"`` or ``"mppi"`` for continuous actions, ``"beam"`` for discrete ones,
        ``"random"`` for both, or a `Planner`.
    reward
        A function of (obs, actions, next_obs), all batches, to one number per row. None: the
        reward is learned.
    learning_starts
        Environment steps with random actions, before the first plan.
    update_every
        Environment steps between two updates of the model.
    model_options, planner_options
        Further arguments of the model and the planner that are named.
    seed
        Of the environment, the model, the planner and the first actions.
    stats_window_size, tensorboard_log, verbose
        As in Stable-Baselines3.
    objective
        Further arguments of `Objective`: ``termination``, ``value``, ``discount``, ``curiosity``,
        ``max_std``. Unless ``std_scale`` is given, the unit of ``curiosity`` is the spread of the
        changes that the environment has shown so far.

    Attributes
    ----------
    world_model, planner, objective
        What it plans with.
    meter
        Time that decisions and updates have taken, and the model's newest errors.

    Examples
    --------
    >>> from losse.planning import PlanningAgent
    >>> agent = PlanningAgent("Pendulum-v1", planner_options={"horizon": 10}, seed=0)
    >>> agent = agent.learn(250)
    >>> obs = agent.get_env().reset()
    >>> actions, plans = agent.predict(obs)
    >>> actions.shape, plans[0].actions.shape, agent.world_model.n_transitions
    ((1, 1), (10, 1), 250)
    """

    def __init__(
        self,
        env: Any,
        world_model: WorldModel | str = "losse",
        planner: Planner | str = "icem",
        reward: Function | None = None,
        *,
        learning_starts: int = 200,
        update_every: int = 25,
        model_options: Mapping[str, Any] | None = None,
        planner_options: Mapping[str, Any] | None = None,
        seed: int | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        **objective: Any,
    ) -> None:
        check_count("learning_starts", learning_starts, at_least=0)
        check_count("update_every", update_every)
        made = gymnasium.make(env) if isinstance(env, str) else env
        self.planner = make_planner(planner, seed or 0, planner_options)
        self.planner.require_suitable(made.action_space)
        super().__init__(
            policy=None,  # type: ignore[arg-type]
            env=made,
            learning_rate=0.0,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device="cpu",
            support_multi_env=True,
            seed=seed,
        )
        if self._vec_normalize_env is not None:
            raise ValueError("env has VecNormalize: leave it out, a world model scales by itself.")
        self.learning_starts = learning_starts
        self.update_every = update_every
        self.world_model = model_for(self.envs, world_model, seed or 0, model_options)
        self.objective = Objective(reward=reward, **objective)
        self.objective.try_out(self.observation_space, self.action_space)
        self.meter = Meter()
        self.changes = RunningMoments(flatdim(self.observation_space))
        self.rng = np.random.default_rng(seed)
        self.pending: list[tuple[Any, ...]] = []  # steps that the model has not learned yet
        self._plans: list[Plan | None] = []
        self._setup_model()

    def _setup_model(self) -> None:
        self.set_random_seed(self.seed)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "planning",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Act in the environment, and learn from what happens.

        Parameters
        ----------
        total_timesteps
            Environment steps, those of all environments together.
        callback, tb_log_name, reset_num_timesteps, progress_bar
            As in Stable-Baselines3. With ``reset_num_timesteps=False`` the count goes on, and the
            first actions are not random once more.
        log_interval
            Episodes between two lines of the log.
        """
        total, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        self._plans = [None] * self.n_envs
        callback.on_training_start(locals(), globals())
        going = True
        while going and self.num_timesteps < total:
            going = self._collect(total, callback, log_interval)
            self.flush()
        callback.on_training_end()
        return self

    def predict(  # type: ignore[override]
        self,
        observation: Any,
        state: Sequence[Plan | None] | None = None,
        episode_start: npt.ArrayLike | None = None,
        deterministic: bool = True,
    ) -> tuple[Any, tuple[Plan, ...]]:
        """Plan the next action, of one observation or of a batch.

        Parameters
        ----------
        observation
            As the environment has it.
        state
            The plans that the call before has returned: each search starts from there.
        episode_start
            Where an episode begins, so that the plan before is of no use.
        deterministic
            Makes no difference: the same arguments give the same action.

        Returns
        -------
        actions
            One, or one per row.
        state
            The plans, for the next call.
        """
        several = np.asarray(observation)
        single = several.shape == (self.observation_space.shape or ())
        rows = several[None] if single else several
        before = [None] * len(rows) if state is None else list(state)
        if len(before) != len(rows):
            raise ValueError(f"state has {len(before)} plans for {len(rows)} observations.")
        if episode_start is not None:
            starts = np.broadcast_to(episode_start, len(rows))
            before = [None if new else plan for plan, new in zip(before, starts, strict=True)]
        decisions = [self._plan(obs, plan) for obs, plan in zip(rows, before, strict=True)]
        actions = np.stack([action for action, _ in decisions])
        return (actions[0] if single else actions), tuple(plan for _, plan in decisions)

    def set_reward(self, reward: Function | None, **objective: Any) -> None:
        """Give a new task: from now on, plan for this reward, with all that was learned.

        Parameters
        ----------
        reward
            As in the constructor; None for the reward that was learned.
        objective
            What else is new of `Objective`, such as ``termination``.
        """
        new = replace(self.objective, reward=reward, **objective)
        new.try_out(self.observation_space, self.action_space)
        self.objective = new
        self._plans = [None] * len(self._plans)

    @property
    def plans(self) -> tuple[Plan | None, ...]:
        """The present plan of each environment; None while actions are random."""
        return tuple(self._plans)

    def flush(self) -> None:
        """Let the world model learn all transitions that it has not learned yet."""
        if not self.pending:
            return
        happened = Transitions.from_steps(self.pending)
        began = time.perf_counter()
        if self.world_model.n_transitions:
            self.meter.errors = one_step_errors(self.world_model, happened)
        self.world_model.update(*happened)
        self.pending = []
        self.meter.update_seconds += time.perf_counter() - began
        self._n_updates += 1
        if isinstance(self.observation_space, spaces.Box):
            change = happened.next_obs.astype(np.float64) - happened.obs
            self.changes.add(change.reshape(len(change), -1), np.ones(len(change)))

    def save(  # type: ignore[override]
        self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
    ) -> None:
        """Write agent and world model to one file, atomically and without pickle.

        Functions (``reward``, ``termination``, ``value``) are not written. ``notes`` are anything
        that JSON can hold, for `losse.planning.checkpoint.read_notes`.
        """
        checkpoint.save(self, path, notes)

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: str | os.PathLike[str],
        env: Any,
        *,
        world_model: WorldModel | None = None,
        **changes: Any,
    ) -> Self:
        """Read what `save` has written; ``learn(..., reset_num_timesteps=False)`` then goes on.

        Parameters
        ----------
        path
            Of the file.
        env
            An environment like that of the saved agent. It starts with a new episode.
        world_model
            To be used instead of the saved one.
        changes
            Arguments of the constructor that shall be others. Functions cannot be saved: ``reward``
            and its like must be given once more if the agent had them, or as None.
        """
        return checkpoint.load(cls, path, env, world_model, changes)

    def state(self) -> State:
        """What the agent has lived through, but for its world model; for a checkpoint."""
        pending = Transitions.from_steps(self.pending).columns if self.pending else {}
        return {
            "num_timesteps": self.num_timesteps,
            "episodes": self._episode_num,
            "updates": self._n_updates,
            "rng": self.rng.bit_generator.state,
            "meter": asdict(self.meter),
            "n_pending": len(self.pending),
            **nested("changes", self.changes.state()),
            **nested("pending", pending),
        }

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.num_timesteps = saved.count("num_timesteps")
        self._episode_num = saved.count("episodes")
        self._n_updates = saved.count("updates")
        self.changes.restore(saved.part("changes"))
        try:
            self.rng.bit_generator.state = saved.value("rng")
            self.meter = Meter(**saved.value("meter"))
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            saved.refuse(f"rng or meter make no sense: {error}")
        n = saved.count("n_pending", at_most=1 << 24)
        if n:
            rows = saved.part("pending")
            obs, action = self.observation_space, self.action_space
            kinds: dict[str, tuple[Any, Any]] = {
                "obs": (obs.shape, obs.dtype),
                "actions": (action.shape, action.dtype),
                "rewards": ((), np.float64),
                "next_obs": (obs.shape, obs.dtype),
                "terminated": ((), np.bool_),
            }
            columns = [
                rows.array(name, (n, *(shape or ())), dtype)
                for name, (shape, dtype) in kinds.items()
            ]
            self.pending = list(zip(*columns, strict=True))

    @property
    def envs(self) -> VecEnv:
        """The environments that it acts in."""
        assert self.env is not None
        return self.env

    def _collect(self, total: int, callback: BaseCallback, log_interval: int) -> bool:
        """Act until the model is to learn; False if the callback wants to end."""
        env = self.envs
        callback.on_rollout_start()
        while len(self.pending) < self.update_every and self.num_timesteps < total:
            obs = np.asarray(self._last_obs)
            actions = self._act(obs)
            new_obs, rewards, dones, infos = env.step(actions)
            self.num_timesteps += env.num_envs
            self._remember(obs, actions, rewards, np.asarray(new_obs), dones, infos)
            self._last_obs = new_obs  # type: ignore[assignment]
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            self._update_current_progress_remaining(self.num_timesteps, total)
            for index in np.flatnonzero(dones):
                self._plans[index] = None
                self._episode_num += 1
                if log_interval and self._episode_num % log_interval == 0:
                    self.dump_logs()
        callback.on_rollout_end()
        return True

    def _act(self, obs: Rows) -> Rows:
        """Actions of all environments: random ones first, then those of plans."""
        if self.world_model.n_transitions + len(self.pending) < self.learning_starts:
            return uniform(self.action_space, (len(obs),), self.rng)
        actions = []
        for index, row in enumerate(obs):
            action, self._plans[index] = self._plan(row, self._plans[index], self.rng)
            actions.append(action)
        return np.stack(actions)

    def _plan(
        self, obs: Rows, previous: Plan | None, rng: np.random.Generator | None = None
    ) -> tuple[Any, Plan]:
        began = time.perf_counter()
        wish = self.objective
        if wish.curiosity and wish.std_scale is None and self.changes.weight:
            spread = np.sqrt(self.changes.variance)
            wish = replace(wish, std_scale=np.where(spread > 0, spread, 1.0))
        decision = self.planner(self.world_model, obs, wish, previous=previous, rng=rng)
        self.meter.decision_seconds += time.perf_counter() - began
        self.meter.decisions += 1
        return decision

    def _remember(
        self, obs: Rows, actions: Rows, rewards: Rows, new_obs: Rows, dones: Rows, infos: Any
    ) -> None:
        for i, info in enumerate(infos):
            # After an end the new observation is the first of the next episode.
            reached = info["terminal_observation"] if dones[i] else new_obs[i]
            ended = bool(dones[i]) and not info.get("TimeLimit.truncated", False)
            self.pending.append((obs[i].copy(), actions[i], float(rewards[i]), reached, ended))

    def dump_logs(self) -> None:
        """Write a line of the log."""
        record = self.logger.record
        elapsed = max((time.time_ns() - self.start_time) / 1e9, 1e-9)
        record("time/episodes", self._episode_num, exclude="tensorboard")
        if self.ep_info_buffer:
            record("rollout/ep_rew_mean", safe_mean([e["r"] for e in self.ep_info_buffer]))
            record("rollout/ep_len_mean", safe_mean([e["l"] for e in self.ep_info_buffer]))
        record("time/fps", int((self.num_timesteps - self._num_timesteps_at_start) / elapsed))
        record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.meter.log(self.logger)
        self.logger.dump(step=self.num_timesteps)
