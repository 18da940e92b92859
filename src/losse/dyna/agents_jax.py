"""Actions and values of SBX agents, compiled: networks are functions of a training state."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp


def all_values(policy: Any, obs: Any) -> Any:
    """Q(s, a) of all discrete actions."""
    state = policy.qf_state
    return _all_values(state.apply_fn, state.params, policy.prepare_obs(obs)[0])


def best_actions(policy: Any, obs: Any) -> Any:
    """Discrete actions with the largest Q(s, a)."""
    state = policy.qf_state
    return _best_actions(state.apply_fn, state.params, policy.prepare_obs(obs)[0])


def critic_values(policy: Any, obs: Any, actions: Any) -> Any:
    """Q(s, a) of continuous actions within [-1, 1]."""
    names = ("qf_state",) if hasattr(policy, "qf_state") else ("qf1_state", "qf2_state")
    rows = policy.prepare_obs(obs)[0]
    return sum(_critic_values(getattr(policy, name), rows, actions) for name in names) / len(names)


def largest_parameter(policy: Any) -> float:
    """Largest absolute weight of all networks, NaN if one is."""
    states = [state.params for state in vars(policy).values() if hasattr(state, "params")]
    return float(_largest(states))


@partial(jax.jit, static_argnums=0)
def _all_values(network: Any, params: Any, obs: Any) -> Any:
    return network(params, obs)


@partial(jax.jit, static_argnums=0)
def _best_actions(network: Any, params: Any, obs: Any) -> Any:
    return jnp.argmax(network(params, obs), axis=1)


@jax.jit
def _critic_values(state: Any, obs: Any, actions: Any) -> Any:
    rngs = {"dropout": jax.random.PRNGKey(0)}
    if hasattr(state, "batch_stats"):  # CrossQ
        weights = {"params": state.params, "batch_stats": state.batch_stats}
        values = state.apply_fn(weights, obs, actions, rngs=rngs, train=False)
    else:
        values = state.apply_fn(state.params, obs, actions, rngs=rngs)
    # (critics, rows, 1), or quantiles: (rows, quantiles)
    return values.mean(axis=(0, 2)) if values.ndim == 3 else values.mean(axis=1)


@jax.jit
def _largest(tree: Any) -> Any:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))
