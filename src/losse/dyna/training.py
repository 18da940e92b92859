"""One training from start to end: agent, world model, evaluations along the way, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from losse.dyna.agents import agent_class, require_suitable_agent
from losse.dyna.callback import DynaCallback
from losse.dyna.checkpoint import latest_checkpoint, load_run, read_notes
from losse.dyna.divergence import DivergedModelError
from losse.dyna.evaluation import EvaluationCallback
from losse.dyna.make import make_dyna
from losse.dyna.options import Training, rescaled
from losse.dyna.progress import COMPLETE, MAKING, READING, TrainingObserver, TrainingProgress
from losse.envs import ExploringStarts
from losse.storage.jsonfile import plain


def train(
    training: Training,
    *,
    folder: Path | None = None,
    checkpoint_every: int = 10_000,
    checkpoint_seconds: float = 300.0,
    resume: bool = False,
    stop: Callable[[], bool] | None = None,
    observer: TrainingObserver | None = None,
    callbacks: Sequence[BaseCallback] = (),
    keep_diverged: bool = False,
) -> TrainingProgress:
    """Train one agent with one seed.

    Parameters
    ----------
    training
        What to do.
    folder
        Where checkpoints are kept, the last of them at the end. None: nowhere.
    checkpoint_every, checkpoint_seconds
        Environment steps and seconds between them, as in `DynaCallback`.
    resume
        Go on from the checkpoint in ``folder``, if there is one. It must not have more steps than
        ``training`` asks for.
    stop
        Is asked before every rollout. True ends the training there: what has been learned is saved,
        and the result has fewer steps than ``training`` asks for.
    observer
        Is told of stages, steps, evaluations and checkpoints.
    callbacks
        Further ones of Stable-Baselines3, which see the agent itself.
    keep_diverged
        Return what was found up to the last evaluation if the world model diverges after it,
        instead of raising `FloatingPointError`.

    Examples
    --------
    >>> from losse.dyna import DynaOptions
    >>> small = {"buffer_size": 1000, "policy_kwargs": {"net_arch": [8, 8]}}
    >>> result = train(
    ...     Training(env="CartPole-v1", backend="sb3", steps=200, eval_every=100, eval_episodes=1,
    ...              dyna=DynaOptions(planning_steps=1), agent_options=small)
    ... )
    >>> [steps for steps, _ in result.curve], result.gradient_steps
    ([100, 200], 50)
    """
    observer = observer or TrainingObserver()
    observer.stage(MAKING)
    kind = agent_class(training.agent, training.backend)
    env, held_out = environments(training)
    try:
        require_suitable_agent(training.agent, env.action_space)
        before = _saved(training, folder) if resume and folder is not None else None
        if before is None or folder is None:
            agent = make_dyna(kind, env, **training.arguments())
        else:
            observer.stage(READING)
            rules = training.rules().items()
            functions = {name: rule for name, rule in rules if not isinstance(rule, str)}
            agent = load_run(kind, folder, env, **functions)
            observer.saved(folder, agent.num_timesteps)
            observer.stepped(agent.num_timesteps)
        evaluation = EvaluationCallback(
            held_out, training.eval_every, training.seed, before or TrainingProgress(), observer
        )
        keep = DynaCallback(
            checkpoint=folder,
            checkpoint_every=checkpoint_every,
            checkpoint_seconds=checkpoint_seconds,
            notes=lambda: {"training": plain(training), "progress": asdict(evaluation.progress)},
            on_save=observer.saved,
        )
        left = training.steps - agent.num_timesteps
        if left > 0:
            every = [evaluation, keep, StopCallback(stop), *callbacks]
            try:
                agent.learn(left, callback=every, reset_num_timesteps=False)
            except TrainingStopped:
                keep.on_training_end()  # saves; an evaluation would keep the user waiting
            except DivergedModelError as error:
                if not keep_diverged or not evaluation.progress.curve:
                    raise
                return replace(evaluation.progress, diverged=str(error))
        else:
            observer.stage(COMPLETE)
        return evaluation.progress
    finally:
        env.close()
        held_out.close()


class TrainingStopped(Exception):  # noqa: N818 - no error
    """A training was asked to stop."""


class StopCallback(BaseCallback):
    """Callback that stops a training between two rollouts: there agent and buffer are complete."""

    def __init__(self, stop: Callable[[], bool] | None) -> None:
        super().__init__()
        self._stop = stop

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._stop is not None and self._stop():
            raise TrainingStopped


def environments(training: Training) -> tuple[VecEnv, VecEnv]:
    """Environments to train in, and as many others as an evaluation has episodes."""
    options = dict(training.env_options)

    def learned_in(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        env = ExploringStarts(env) if training.exploring_starts else env
        return rescaled(env) if training.rescale_obs else env

    env = make_vec_env(
        partial(gymnasium.make, training.env),  # by its name, it would be asked to draw pictures
        training.n_envs,
        seed=training.seed,
        env_kwargs=options | {"max_episode_steps": training.train_limit},
        wrapper_class=learned_in,
    )
    held_out: Callable[[], Any] = partial(training.make_env, training.eval_limit)
    return env, DummyVecEnv([held_out] * training.eval_episodes)


def _saved(training: Training, folder: Path) -> TrainingProgress | None:
    """Progress of an earlier part of the same training, None if there was none."""
    try:
        latest_checkpoint(folder)
    except FileNotFoundError:
        return None
    notes = read_notes(folder)
    # A run that is older than an option had what is usual now.
    usual, found = _flat(plain(Training(env=training.env))), _flat(notes["training"])
    asked, found = _flat(plain(training)), usual | found
    for name, value in asked.items():
        if name != "steps" and found.get(name) != value:
            raise ValueError(
                f"{name}={value!r} is not that of the run saved in {folder}, {found.get(name)!r}: "
                "resume with the same options, or choose another folder."
            )
    done = notes["progress"]["steps"]
    if training.steps < min(done, found["steps"]):
        raise ValueError(
            f"steps={training.steps} are fewer than the {done} that the run saved in {folder} has "
            "done: give at least as many, or choose another folder to start anew."
        )
    values = notes["progress"]
    curves = {key: tuple(map(tuple, x)) for key, x in values.items() if isinstance(x, list)}
    return TrainingProgress(**values | curves)


def _flat(training: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a training, with those of Dyna beside the others."""
    return {**{k: v for k, v in training.items() if k != "dyna"}, **training.get("dyna", {})}
