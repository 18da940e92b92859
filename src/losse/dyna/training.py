"""One training from start to end: agent, world model, evaluations along the way, and the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from losse.checks import check_count
from losse.dyna.callback import DynaCallback
from losse.dyna.catalogue import agent_class, require_suitable
from losse.dyna.make import make_dyna
from losse.dyna.models import METHODS
from losse.dyna.run import latest_checkpoint, load_run, read_notes
from losse.dyna.watch import Progress, Report, Watch
from losse.envs import ExploringStarts
from losse.storage.jsonfile import plain


@dataclass(frozen=True, kw_only=True)
class Training:
    """All that decides what comes out, apart from the machine; options are plain JSON values.

    Names are those of `make_dyna` where it has them. ``rescale_obs`` maps observations with bounds
    to [-1, 1] for agent and model alike. ``exploring_starts`` starts episodes anywhere, but not
    those of evaluations. ``train_limit`` and ``eval_limit`` cut the episodes of training and of
    evaluations off earlier than the environment does.
    """

    env: str
    agent: str = "dqn"
    backend: str = "auto"
    model: str = "losse"
    steps: int = 15_000
    seed: int = 0
    n_envs: int = 1
    planning_steps: int = 16
    update_every: int = 25
    search_control: str = "uniform"
    horizon: int = 1
    real_share: float | str = "auto"
    greedy_share: float = 0.5
    target_update_gradient_steps: int = 100
    rescale_obs: bool = False
    exploring_starts: bool = False
    train_limit: int | None = None
    eval_every: int = 500
    eval_episodes: int = 5
    eval_limit: int | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("steps", "n_envs", "eval_every", "eval_episodes"):
            check_count(name, getattr(self, name))
        check_count("seed", self.seed, at_least=0)
        for name in ("train_limit", "eval_limit"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.model not in METHODS:
            raise ValueError(f"no model {self.model!r}; choose from: {', '.join(METHODS)}")


def train(
    training: Training,
    *,
    folder: Path | None = None,
    checkpoint_every: int = 10_000,
    resume: bool = False,
    report: Report | None = None,
    callbacks: Sequence[BaseCallback] = (),
) -> Progress:
    """Train one agent with one seed.

    Parameters
    ----------
    training
        What to do.
    folder
        Where checkpoints are kept, the last of them at the end. None: nowhere.
    checkpoint_every
        Environment steps between them.
    resume
        Go on from the checkpoint in ``folder``, if there is one.
    report
        Is called after every evaluation.
    callbacks
        Further ones of Stable-Baselines3, which see the agent itself.

    Examples
    --------
    >>> small = {"buffer_size": 1000, "policy_kwargs": {"net_arch": [8, 8]}}
    >>> result = train(
    ...     Training(env="CartPole-v1", backend="sb3", steps=200, planning_steps=1, eval_every=100,
    ...              eval_episodes=1, agent_options=small)
    ... )
    >>> [steps for steps, _ in result.curve], result.gradient_steps
    ([100, 200], 50)
    """
    kind = agent_class(training.agent, training.backend)
    env, held_out = environments(training)
    try:
        require_suitable(training.agent, env.action_space)
        before = _saved(training, folder) if resume and folder is not None else None
        if before is None or folder is None:
            agent = make_agent(training, kind, env)
        else:
            agent = load_run(kind, folder, env)
        watch = Watch(held_out, training.eval_every, training.seed, before or Progress(), report)
        keep = DynaCallback(
            checkpoint=folder,
            checkpoint_every=checkpoint_every,
            notes=lambda: {"training": plain(training), "progress": asdict(watch.progress)},
        )
        left = training.steps - agent.num_timesteps
        if left > 0:
            agent.learn(left, callback=[watch, keep, *callbacks], reset_num_timesteps=False)
        return watch.progress
    finally:
        env.close()
        held_out.close()


def make_agent(training: Training, kind: Any, env: VecEnv) -> Any:
    """A new agent as a training wants it."""
    options = {"buffer_size": min(1_000_000, training.steps)} | dict(training.agent_options)
    return make_dyna(
        kind,
        env,
        training.model,
        training.planning_steps,
        training.update_every,
        training.search_control,
        training.horizon,
        real_share=training.real_share,
        greedy_share=training.greedy_share,
        target_update_gradient_steps=training.target_update_gradient_steps,
        model_options=training.model_options or None,
        seed=training.seed,
        **options,
    )


def environments(training: Training) -> tuple[VecEnv, VecEnv]:
    """Those to train in, and as many as there are episodes in an evaluation."""
    options = dict(training.env_options)

    def seen(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        return rescaled(env) if training.rescale_obs else env

    def learned_in(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        return seen(ExploringStarts(env) if training.exploring_starts else env)

    env = make_vec_env(
        training.env,
        training.n_envs,
        seed=training.seed,
        env_kwargs=options | {"max_episode_steps": training.train_limit},
        wrapper_class=learned_in,
    )

    def make() -> gymnasium.Env[Any, Any]:
        return seen(gymnasium.make(training.env, training.eval_limit, **options))

    return env, DummyVecEnv([make] * training.eval_episodes)


def rescaled(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """An environment whose observations go from -1 to 1.

    >>> rescaled(gymnasium.make("MountainCar-v0")).observation_space
    Box(-1.0, 1.0, (2,), float32)
    """
    space = env.observation_space
    if not (isinstance(space, spaces.Box) and space.is_bounded()):
        raise ValueError(
            f"rescale_obs=True needs observations with finite bounds, not {space}: leave it out, "
            "or normalise by what is seen, with VecNormalize."
        )
    return gymnasium.wrappers.RescaleObservation(env, np.float32(-1), np.float32(1))


def _saved(training: Training, folder: Path) -> Progress | None:
    """What an earlier run of the same training has come to; None if there was none."""
    try:
        latest_checkpoint(folder)
    except FileNotFoundError:
        return None
    notes = read_notes(folder)
    asked, found = plain(training), notes["training"]
    for name, value in asked.items():
        if name != "steps" and found.get(name) != value:
            raise ValueError(
                f"{name}={value!r} is not that of the run saved in {folder}, {found.get(name)!r}: "
                "resume with the same options, or choose another folder."
            )
    pairs = {key: tuple(map(tuple, notes["progress"][key])) for key in ("curve", "times", "errors")}
    return Progress(**notes["progress"] | pairs)
