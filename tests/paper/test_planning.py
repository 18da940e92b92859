"""Planning alone: the simulator is the environment, and every kind of agent leaves a record."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from losse.paper.planning import alone
from losse.paper.planning.simulator import PUTS, Simulator


@pytest.mark.parametrize("name", PUTS)
def test_the_simulator_does_what_the_environment_does(name):
    env, model = gymnasium.make(name), Simulator(name)
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    for _ in range(80):
        action = env.action_space.sample()
        imagined, rewards, ends = model.step(obs[None], np.array([action]))
        after, reward, terminated, truncated, _ = env.step(action)
        np.testing.assert_allclose(imagined[0], after, atol=1e-5)
        assert rewards[0] == pytest.approx(reward, abs=1e-5)
        assert ends[0] == terminated
        obs = env.reset()[0] if terminated or truncated else after


def test_other_environments_are_refused():
    with pytest.raises(ValueError, match="env_id='Hopper-v5' is not known"):
        Simulator("Hopper-v5")


@pytest.mark.parametrize("method", ["losse", "oracle", "model-free", "dyna"])
def test_every_kind_of_agent_leaves_a_record(method, monkeypatch):
    quick = {"horizon": 3, "n_samples": 5, "n_iterations": 1}
    task = alone.TASKS["Pendulum-v1"]._replace(options=quick)
    monkeypatch.setitem(alone.TASKS, "Pendulum-v1", task)
    monkeypatch.setattr(alone, "LEARNING_STARTS", 190)
    settings = alone.Settings(methods=(method,), envs=("Pendulum-v1",), steps=210, seeds=1)
    (run,) = alone.final(settings, [])
    (record,) = alone.execute(settings, [run])
    assert record.key == run.key
    assert [step for step, _ in record.details["episodes"]] == [200]
    assert len(record.curve) == 20
    returned = record.details["episodes"][0][1]
    assert record.curve[-1] == (210.0, pytest.approx(task.normalised(returned), abs=1e-3))
    assert record.score == pytest.approx(task.normalised(returned) / 20, abs=1e-3)
    assert alone.table([record]).rows[0][:2] == ("Pendulum", method)
    assert set(alone.draw([record])) == {"returns"}


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="no task 'Hopper-v5'"):
        alone.Settings(envs=("Hopper-v5",))
