"""Planning alone: every kind of agent leaves a record."""

import pytest

pytest.importorskip("stable_baselines3")

from losse.paper.planning import alone


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
