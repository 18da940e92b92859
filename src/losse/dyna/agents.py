"""Agents by name, and what Dyna asks of an agent: actions and values of many observations.

Observations are as the agent sees them (normalised, if it normalises), actions of `action_values`
as its replay buffer keeps them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Rows = npt.NDArray[Any]


class AgentEntry(NamedTuple):
    """An agent's classes, by library, and whether its actions are discrete."""

    classes: dict[str, str]
    discrete: bool = False


AGENTS = {
    "dqn": AgentEntry({"sbx": "sbx.DQN", "sb3": "stable_baselines3.DQN"}, discrete=True),
    "qrdqn": AgentEntry({"sb3": "sb3_contrib.QRDQN"}, discrete=True),
    "sac": AgentEntry({"sbx": "sbx.SAC", "sb3": "stable_baselines3.SAC"}),
    "td3": AgentEntry({"sbx": "sbx.TD3", "sb3": "stable_baselines3.TD3"}),
    "ddpg": AgentEntry({"sbx": "sbx.DDPG", "sb3": "stable_baselines3.DDPG"}),
    "tqc": AgentEntry({"sbx": "sbx.TQC", "sb3": "sb3_contrib.TQC"}),
    "crossq": AgentEntry({"sbx": "sbx.CrossQ", "sb3": "sb3_contrib.CrossQ"}),
}
BACKENDS = ("auto", "sbx", "sb3")
"""Libraries of agents; "auto" is SBX (JAX), which is faster, where it has the agent."""


def agent_class(name: str, backend: str = "auto") -> Any:
    """Class of an agent in one of the `BACKENDS`.

    >>> agent_class("td3", "sb3").__name__
    'TD3'
    >>> agent_class("qrdqn", "sbx")
    Traceback (most recent call last):
    ...
    ValueError: agent 'qrdqn' is not in backend 'sbx'; choose from: sb3
    """
    if name not in AGENTS:
        raise ValueError(f"agent {name!r} is not known; choose from: {', '.join(AGENTS)}")
    homes = AGENTS[name].classes
    if backend == "auto":
        backend = next(iter(homes))
    if backend not in homes:
        raise ValueError(
            f"agent {name!r} is not in backend {backend!r}; choose from: {', '.join(homes)}"
        )
    module, _, attribute = homes[backend].rpartition(".")
    return getattr(import_module(module), attribute)


def require_suitable_agent(name: str, action_space: spaces.Space[Any]) -> None:
    """Raise `ValueError` if an agent, known by its name or not, cannot take such actions.

    >>> require_suitable_agent("dqn", spaces.Box(-1, 1, (2,)))
    Traceback (most recent call last):
    ...
    ValueError: agent 'dqn' does not suit the actions Box(-1.0, 1.0, (2,), float32); choose from: \
sac, td3, ddpg, tqc, crossq
    """
    if not isinstance(action_space, spaces.Discrete | spaces.Box):
        raise ValueError(
            f"no agent takes the actions {action_space}: off-policy agents know Discrete and Box. "
            "Wrap the environment, for example so that each combination is a choice of a Discrete."
        )
    discrete = isinstance(action_space, spaces.Discrete)
    suitable = [agent for agent, entry in AGENTS.items() if entry.discrete == discrete]
    if name in AGENTS and name not in suitable:
        raise ValueError(
            f"agent {name!r} does not suit the actions {action_space}; choose from: "
            f"{', '.join(suitable)}"
        )


def is_stochastic(agent: Any) -> bool:
    """Whether the agent's policy draws actions by itself, as SAC's family does."""
    return hasattr(agent, "ent_coef")


def is_valued(agent: Any) -> bool:
    """Whether the agent has a value for each discrete action, as DQN's family does."""
    return hasattr(agent, "exploration_rate")


def act(agent: Any, obs: Rows, *, deterministic: bool) -> Rows:
    """Actions in the environment's units, without DQN's exploration (one draw for all rows)."""
    policy = agent.policy
    if deterministic and _is_jax(agent) and is_valued(agent):
        from losse.dyna.agents_jax import best_actions

        return np.asarray(best_actions(policy, obs))  # faster than predict: no optimiser goes along
    training = policy.training
    actions, _ = policy.predict(obs, deterministic=deterministic)
    policy.set_training_mode(training)  # predict has switched it off, amidst a training call
    return np.asarray(actions)


def action_values(agent: Any, obs: Rows, actions: Rows) -> npt.NDArray[np.float64]:
    """Q(s, a), the mean over critics and quantiles if there are several."""
    if is_valued(agent):
        every = _all_values(agent, obs)
        return np.take_along_axis(every, actions.astype(np.int64), axis=1)[:, 0]
    if _is_jax(agent):
        from losse.dyna.agents_jax import critic_values

        return np.asarray(critic_values(agent.policy, obs, actions), dtype=np.float64)
    import torch

    with torch.no_grad():
        tensor, _ = agent.policy.obs_to_tensor(obs)
        found = agent.policy.critic(tensor, torch.as_tensor(actions, device=agent.device))
        joined = torch.cat(found, dim=1) if isinstance(found, tuple) else found
        return joined.flatten(1).mean(dim=1).cpu().numpy().astype(np.float64)


def state_values(agent: Any, obs: Rows) -> npt.NDArray[np.float64]:
    """V(s): the value of the action that the agent finds best."""
    if is_valued(agent):
        return _all_values(agent, obs).max(axis=1)
    actions = act(agent, obs, deterministic=True)
    scaled = agent.policy.scale_action(actions).reshape(len(actions), -1)
    return action_values(agent, obs, scaled.astype(np.float32))


def largest_weight(agent: Any) -> float:
    """Largest absolute weight of the agent's networks, NaN if one of them is."""
    if _is_jax(agent):
        from losse.dyna.agents_jax import largest_parameter

        return largest_parameter(agent.policy)
    return max(float(weights.detach().abs().max()) for weights in agent.policy.parameters())


def _all_values(agent: Any, obs: Rows) -> npt.NDArray[np.float64]:
    if _is_jax(agent):
        from losse.dyna.agents_jax import all_values

        return np.asarray(all_values(agent.policy, obs), dtype=np.float64)
    import torch

    with torch.no_grad():
        tensor, _ = agent.policy.obs_to_tensor(obs)
        if hasattr(agent.policy, "quantile_net"):
            found = agent.policy.quantile_net(tensor).mean(dim=1)
        else:
            found = agent.policy.q_net(tensor)
        return found.cpu().numpy().astype(np.float64)


def _is_jax(agent: Any) -> bool:
    return hasattr(agent.policy, "qf_state") or hasattr(agent.policy, "qf1_state")
