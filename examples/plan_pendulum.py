"""Swing up a pendulum by planning in a world model, then give it another task without training.

Run it with ``python examples/plan_pendulum.py``. It needs the extra ``rl`` and takes half a minute.
"""

import numpy as np

from losse.planning import PlanningAgent


def spin(obs: np.ndarray, actions: np.ndarray, next_obs: np.ndarray) -> np.ndarray:
    """A reward that the agent has never had: turn at 4 rad/s, wherever the pendulum is."""
    return -np.abs(next_obs[:, 2] - 4.0)


def velocities(agent: PlanningAgent, steps: int) -> np.ndarray:
    """Velocities of an episode in which nothing is learned."""
    env = agent.get_env()
    obs, plans, seen = env.reset(), None, []
    for _ in range(steps):
        actions, plans = agent.predict(obs, plans)
        obs, _, _, _ = env.step(actions)
        seen.append(obs[0, 2])
    return np.array(seen)


def main() -> None:
    """Learn for three episodes, of which the first is random."""
    options = {"horizon": 20, "n_samples": 100, "n_iterations": 3}
    agent = PlanningAgent("Pendulum-v1", planner_options=options, seed=0)

    def tell(local: dict, _: dict) -> bool:
        for info in local["infos"]:
            if "episode" in info:
                print(f"step {agent.num_timesteps}: return {info['episode']['r']:.0f}")
        return True

    agent.learn(600, callback=tell)
    agent.set_reward(spin)
    after = velocities(agent, 100)[50:]
    print(f"mean velocity with the new reward: {after.mean():.1f} rad/s (asked for: 4)")


if __name__ == "__main__":
    main()
