"""Known rules say what the environments say."""

import gymnasium
import numpy as np
import pytest

from losse.envs.terminations import NEVER, TERMINATIONS, known_termination


@pytest.mark.parametrize("name", TERMINATIONS)
def test_a_rule_is_that_of_the_environment(name):
    if name not in ("CartPole-v1", "Pendulum-v1"):
        pytest.importorskip("mujoco")
    env = gymnasium.make(name)
    env.action_space.seed(0)
    rows, truth = [], []
    obs, _ = env.reset(seed=0)
    for _ in range(300):
        action = env.action_space.sample()
        reached, _, terminated, truncated, _ = env.step(action)
        rows.append((obs, action, reached))
        truth.append(terminated)
        obs = env.reset()[0] if terminated or truncated else reached
    rule = known_termination(name)
    if rule == NEVER:
        assert not any(truth)
        return
    np.testing.assert_array_equal(rule(*(np.array(column) for column in zip(*rows, strict=True))),
                                  truth)  # fmt: skip
    assert any(truth)


def test_other_environments_are_named():
    with pytest.raises(ValueError, match="'Taxi-v3' end is not known"):
        known_termination("Taxi-v3")
