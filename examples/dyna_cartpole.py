"""Give a DQN of Stable-Baselines3 a world model, and compare it with the same agent without one.

Run it with ``python examples/dyna_cartpole.py --steps 4000`` for a result; the default is a short
trial. It needs the extra ``rl``. One seed shows how it is done, not which is better.
"""

import argparse

from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy

from losse.dyna import make_dyna


def main() -> None:
    """Train both agents with as many gradient steps each, and print their returns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    for model in ("losse", "model-free-matched"):
        agent = make_dyna(
            DQN,
            "CartPole-v1",
            world_model=model,
            planning_steps=4,
            learning_rate=1e-3,
            learning_starts=100,
            seed=0,
        )
        agent.learn(steps)
        mean, _ = evaluate_policy(agent, agent.get_env(), n_eval_episodes=5)
        seconds = agent.replay_buffer.meter.model_seconds
        print(f"{model}: return {mean:.0f} after {steps} steps, {seconds:.1f} s for the model")


if __name__ == "__main__":
    main()
