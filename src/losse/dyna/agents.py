"""What Dyna asks of an agent: actions and values of many observations, and whether it is healthy.

Observations are as the agent sees them (normalised, if it normalises), actions of `action_values`
as its replay buffer keeps them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]

LARGEST_PARAMETER = 1e8
"""A network with larger weights has diverged, whether or not its numbers are finite still."""


def is_stochastic(agent: Any) -> bool:
    """Whether its policy draws actions by itself, as SAC's family does."""
    return hasattr(agent, "ent_coef")


def is_valued(agent: Any) -> bool:
    """Whether it has a value for each discrete action, as DQN's family does."""
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


def require_healthy(agent: Any) -> None:
    """Raise `FloatingPointError` if the agent's weights are not finite, or far too large."""
    if _is_jax(agent):
        from losse.dyna.agents_jax import largest_parameter

        largest = largest_parameter(agent.policy)
    else:
        largest = max(float(p.detach().abs().max()) for p in agent.policy.parameters())
    if not largest <= LARGEST_PARAMETER:
        what = "is not finite" if not math.isfinite(largest) else f"has grown to {largest:.1e}"
        raise FloatingPointError(
            f"the agent has diverged: a weight of {type(agent).__name__} {what} after "
            f"{agent.num_timesteps} steps. Its world model is not at fault. Lower learning_rate, "
            "or go on from the last checkpoint."
        )


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
