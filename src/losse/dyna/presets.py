"""Options of whole trainings, as data: tuned ones, and those of MBPO on MuJoCo.

The tuned ones are the defaults of `losse train`. `losse reproduce classic-control` compares them
with the matched control: the same agent with as many gradient steps and no model.
`docs/results.md` says how they were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from losse.dyna.options import DynaOptions, Training
from losse.storage.jsonfile import plain

DQN: Mapping[str, Any] = {
    "learning_rate": 1e-3,
    "batch_size": 32,
    "learning_starts": 100,
    "train_freq": 4,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.05,
    "policy_kwargs": {"net_arch": [64, 64]},
}


# Positions and velocities only, as in the literature on models.
_ANT = {"include_cfrc_ext_in_observation": False}
_HUMANOID = {
    f"include_{part}_in_observation": False
    for part in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
}


def _mujoco(
    env: str,
    steps: int,
    entropy: float,
    rate: float,
    updates: int = 10,
    starts: int = 1000,
    env_options: Mapping[str, bool] | None = None,
    **dyna: Any,
) -> Training:
    """SAC after MBPO, but smaller, so that it takes minutes."""
    return Training(
        env=env,
        agent="sac",
        steps=steps,
        termination="known",
        dyna=DynaOptions(planning_steps=updates - 1, **dyna),
        agent_options={
            "learning_rate": rate,
            "batch_size": 128,
            "learning_starts": starts,
            "target_entropy": entropy,
            "policy_kwargs": {"net_arch": [128, 128]},
        },
        env_options=env_options or {},
    )


PRESETS: Mapping[str, Training] = {
    training.env: training
    for training in (
        Training(
            env="CartPole-v1",
            steps=12_800,
            termination="known",
            dyna=DynaOptions(planning_steps=127, update_every=64, real_share=0.5, greedy_share=1.0),
            # After RL Zoo: bursts of gradient steps, with the target network fixed in each.
            agent_options={
                "learning_rate": 2.3e-3,
                "batch_size": 64,
                "learning_starts": 500,
                "train_freq": 64,
                "target_update_interval": 64,
                "exploration_fraction": 0.16,
                "exploration_final_eps": 0.04,
                "policy_kwargs": {"net_arch": [128, 128]},
            },
        ),
        Training(
            env="MountainCar-v0",
            steps=20_000,
            rescale_obs=True,
            agent_options=DQN,
            model_options={"regressor": "paper"},
        ),
        Training(
            env="Acrobot-v1",
            steps=10_000,
            rescale_obs=True,
            agent_options=DQN,
            model_options={"regressor": "paper"},
        ),
        Training(
            env="LunarLander-v3",
            steps=20_000,
            dyna=DynaOptions(planning_steps=7, update_every=100, real_share=0.8, greedy_share=1.0),
            agent_options={
                "learning_rate": 5e-4,
                "batch_size": 128,
                "learning_starts": 1000,
                "train_freq": 4,
                "target_update_interval": 1,
                "tau": 0.01,
                "exploration_fraction": 0.2,
                "exploration_final_eps": 0.05,
                "policy_kwargs": {"net_arch": [256, 256]},
            },
        ),
        Training(
            env="Pendulum-v1",
            agent="sac",
            steps=2_000,
            dyna=DynaOptions(planning_steps=15, update_every=50, pool_steps=0),
            agent_options={
                "learning_rate": 1e-3,
                "batch_size": 128,
                "learning_starts": 200,
                "policy_kwargs": {"net_arch": [64, 64]},
            },
        ),
        _mujoco(
            "InvertedPendulum-v5",
            1_500,
            entropy=-1.0,
            rate=1e-3,
            updates=30,
            starts=200,
            horizon=10,
        ),
        _mujoco("HalfCheetah-v5", 10_000, entropy=-3.0, rate=1e-3),
        _mujoco("Hopper-v5", 16_000, entropy=-1.0, rate=3e-4, horizon=5),
        _mujoco("Walker2d-v5", 16_000, entropy=-3.0, rate=3e-4, horizon=5),
        # Not tuned: the size of the others, with MBPO's entropy and rate.
        _mujoco("Humanoid-v5", 10_000, entropy=-2.0, rate=3e-4, env_options=_HUMANOID),
    )
}
"""A whole training for each environment, with Losse and seed 0."""


def _mbpo(
    env: str,
    epochs: int,
    updates: int,
    entropy: float,
    horizon: int | tuple[int, int, int, int] = 1,
    epoch: int = 1000,
    **env_options: bool,
) -> Training:
    """SAC as in MBPO; the horizon grows over some epochs, of so many steps each."""
    if not isinstance(horizon, int):
        horizon = (horizon[0] * epoch, horizon[1] * epoch, *horizon[2:])
    return Training(
        env=env,
        agent="sac",
        steps=epochs * epoch,
        termination="known",
        eval_every=epoch,
        dyna=DynaOptions(
            planning_steps=updates - 1,
            update_every=epoch // 4,
            horizon=horizon,
            pool_steps=epoch,
            pool_rows=400,
        ),
        agent_options={
            "learning_rate": 3e-4,
            "batch_size": 256,
            "learning_starts": 5000 if epoch == 1000 else 500,
            "target_entropy": entropy,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
        env_options=env_options,
    )


MBPO: Mapping[str, Training] = {
    training.env: training
    for training in (
        _mbpo("HalfCheetah-v5", 400, updates=40, entropy=-3.0),
        _mbpo("Hopper-v5", 125, updates=20, entropy=-1.0, horizon=(20, 150, 1, 15)),
        _mbpo("Walker2d-v5", 300, updates=20, entropy=-3.0),
        _mbpo("Ant-v5", 300, updates=20, entropy=-4.0, horizon=(20, 100, 1, 25), **_ANT),
        _mbpo("Humanoid-v5", 300, updates=20, entropy=-2.0, horizon=(20, 300, 1, 25), **_HUMANOID),
        _mbpo("InvertedPendulum-v5", 15, updates=10, entropy=-0.05, epoch=250),
        _mbpo("InvertedDoublePendulum-v5", 15, updates=20, entropy=-0.5, epoch=250),
    )
}
"""The settings of MBPO (Janner et al., 2019) with Losse as the model: hours to days on a core."""

KINDS: Mapping[str, Mapping[str, Training]] = {"tuned": PRESETS, "mbpo": MBPO}


def preset(env: str, model: str = "losse", kind: str = "tuned") -> Training:
    """Options of a whole training, to be used whole or in parts.

    Parameters
    ----------
    env
        An environment of `PRESETS`, or of `MBPO`.
    model
        World model, or what is used instead of one. Options of Losse are for Losse alone.
    kind
        tuned, or mbpo: the settings of MBPO on MuJoCo, which take long.

    Examples
    --------
    `losse.dyna.training.train` takes all of it. `make_dyna` takes its parts:

    >>> from stable_baselines3 import DQN
    >>> from losse.dyna import make_dyna, preset
    >>> tuned = preset("CartPole-v1")
    >>> agent = make_dyna(DQN, tuned.make_env(), **tuned.arguments())
    >>> agent.learning_rate, agent.gradient_steps
    (0.0023, 128)
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known: use one of {', '.join(KINDS)}.")
    known = KINDS[kind]
    if env not in known:
        raise ValueError(
            f"env={env!r} has no {kind} preset: there are those of {', '.join(known)}."
        )
    tuned = known[env]
    return tuned if model == tuned.model else replace(tuned, model=model, model_options={})


def describe(training: Training) -> dict[str, Any]:
    """Options of a training that are not the plain defaults, with those of its parts beside them.

    >>> describe(Training(env="CartPole-v1", steps=500, agent_options={"batch_size": 8}))
    {'steps': 500, 'batch_size': 8}
    """
    own, usual = _flat(training), _flat(Training(env=training.env))
    return {name: value for name, value in own.items() if value != usual.get(name)}


def _flat(training: Training) -> dict[str, Any]:
    values = plain(training)
    parts = [values.pop(name) for name in ("dyna", "agent_options", "model_options")]
    return {name: value for part in (values, *parts) for name, value in part.items()}
