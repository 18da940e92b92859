"""How good an agent is: returns of whole episodes in environments of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

EVALUATION_SEED = 1_000_000
"""Is added to a run's seed: its evaluations start all in the same states, but not in training's."""


def mean_return(agent: Any, env: VecEnv, seed: int) -> float:
    """Mean return of one episode in each of several environments, with the best known actions.

    The episodes run side by side; an environment that is done is no longer counted. So episodes
    that end early are not overrepresented.
    """
    env.seed(EVALUATION_SEED + seed)
    obs = env.reset()
    normaliser = agent.get_vec_normalize_env()
    returns, going = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while going.any():
        seen = obs if normaliser is None else normaliser.normalize_obs(obs)
        actions, _ = agent.predict(seen, deterministic=True)
        obs, rewards, dones, _ = env.step(actions)
        returns += np.where(going, rewards, 0.0)
        going &= ~dones
    return float(returns.mean())
