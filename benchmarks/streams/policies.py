"""Who acts?  Nobody in particular, or an agent that learns while it is being recorded."""

from __future__ import annotations

from benchmarks.streams.environments import make
from benchmarks.streams.stream import Rows

LEARNING_STARTS = 1000  # the agent's actions are random until then


def random_policy(name: str, n: int, seed: int) -> Rows:
    """Step an environment n times with uniformly random actions."""
    env = make(name)
    env.action_space.seed(seed)
    env.reset(seed=seed)
    for _ in range(n):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    env.close()
    return env.rows()


def changing_policy(name: str, n: int, seed: int) -> Rows:
    """All n steps of a soft actor-critic agent while it learns, exploration included."""
    from sbx import SAC

    env = make(name)
    agent = SAC("MlpPolicy", env, learning_starts=LEARNING_STARTS, seed=seed)
    agent.learn(n)
    env.close()
    return env.rows().take(slice(n))
