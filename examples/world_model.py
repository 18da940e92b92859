"""Learn what CartPole does from random steps, and measure how far ahead the model can be trusted.

Run it with ``python examples/world_model.py --steps 2000``. It needs the extra ``world``.
"""

import argparse

import gymnasium

from losse.world import LosseWorldModel, Transitions, evaluate


def collect(env: gymnasium.Env, n_steps: int) -> Transitions:
    """Steps with random actions."""
    env.action_space.seed(0)
    steps, (obs, _) = [], env.reset(seed=0)
    for _ in range(n_steps):
        action = env.action_space.sample()
        next_obs, reward, terminated, truncated, _ = env.step(action)
        steps.append((obs, action, reward, next_obs, terminated))
        obs = env.reset()[0] if terminated or truncated else next_obs
    return Transitions.from_steps(steps)


def main() -> None:
    """Learn four fifths of the steps in batches of 25, and evaluate on the rest."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=600)
    n_steps = parser.parse_args().steps
    env = gymnasium.make("CartPole-v1")
    rows, learned = collect(env, n_steps), 4 * n_steps // 5
    model = LosseWorldModel(env.observation_space, env.action_space)
    for start in range(0, learned, 25):
        model.update(*rows.take(slice(start, min(start + 25, learned))))
    print(evaluate(model, *rows.take(slice(learned, None)), horizons=(1, 5, 10)).table())


if __name__ == "__main__":
    main()
