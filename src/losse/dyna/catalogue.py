"""Agents by name: which class of which library, and for which actions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gymnasium import spaces

AGENTS: dict[str, dict[str, str]] = {
    "dqn": {"sbx": "sbx.DQN", "sb3": "stable_baselines3.DQN"},
    "qrdqn": {"sb3": "sb3_contrib.QRDQN"},
    "sac": {"sbx": "sbx.SAC", "sb3": "stable_baselines3.SAC"},
    "td3": {"sbx": "sbx.TD3", "sb3": "stable_baselines3.TD3"},
    "ddpg": {"sbx": "sbx.DDPG", "sb3": "stable_baselines3.DDPG"},
    "tqc": {"sbx": "sbx.TQC", "sb3": "sb3_contrib.TQC"},
    "crossq": {"sbx": "sbx.CrossQ", "sb3": "sb3_contrib.CrossQ"},
}
DISCRETE = ("dqn", "qrdqn")


def agent_class(name: str, backend: str = "auto") -> Any:
    """The class of an agent; with "auto" that of SBX, which is faster, if it has one.

    >>> agent_class("td3", "sb3").__name__
    'TD3'
    >>> agent_class("qrdqn", "sbx")
    Traceback (most recent call last):
    ...
    ValueError: agent 'qrdqn' is not in backend 'sbx'; choose from: sb3
    """
    if name not in AGENTS:
        raise ValueError(f"no agent {name!r}; choose from: {', '.join(AGENTS)}")
    homes = AGENTS[name]
    if backend == "auto":
        backend = next(iter(homes))
    if backend not in homes:
        raise ValueError(
            f"agent {name!r} is not in backend {backend!r}; choose from: {', '.join(homes)}"
        )
    module, _, attribute = homes[backend].rpartition(".")
    return getattr(import_module(module), attribute)


def require_suitable(name: str, action_space: spaces.Space[Any]) -> None:
    """Raise `ValueError` if an agent cannot take such actions.

    >>> require_suitable("dqn", spaces.Box(-1, 1, (2,)))
    Traceback (most recent call last):
    ...
    ValueError: agent 'dqn' does not suit the actions Box(-1.0, 1.0, (2,), float32); choose from: \
sac, td3, ddpg, tqc, crossq
    """
    discrete = isinstance(action_space, spaces.Discrete)
    suitable = [agent for agent in AGENTS if (agent in DISCRETE) == discrete]
    if name not in suitable:
        raise ValueError(
            f"agent {name!r} does not suit the actions {action_space}; choose from: "
            f"{', '.join(suitable)}"
        )
