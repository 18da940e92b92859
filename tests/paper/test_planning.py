"""Planning alone and tasks in sequence: records, what they come to, and the worlds."""

import pytest

pytest.importorskip("stable_baselines3")

import numpy as np
import pytest

from losse.paper.planning import alone

pytest.importorskip("stable_baselines3")

from losse.paper.planning import continual
from losse.runs.record import Record


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
    assert record.score == pytest.approx(task.normalised(returned), abs=1e-3)
    assert alone.table([record]).rows[0][:2] == ("Pendulum", method)
    assert set(alone.draw([record])) == {"returns"}


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="no task 'Hopper-v5'"):
        alone.Settings(envs=("Hopper-v5",))


def record(method, returns, seconds=()):
    details = {"returns": returns, "update_seconds": list(seconds)}
    return Record(experiment="continual", method=method, setting="compass", seed=0,
                  score=0.0, details=details)  # fmt: skip


CONTROLS = [record("random", [[-10.0, -20.0]]), record("alone", [[0.0, 0.0]])]


def test_measures_refer_to_random_actions_and_to_training_alone():
    run = record("losse", [[-1.0, -20.0], [-4.0, -2.0]], (0.5, 0.25))
    found = continual.measures(run, CONTROLS)
    assert found.performance == pytest.approx((0.6 + 0.9) / 2)
    assert found.forgetting == pytest.approx(0.9 - 0.6)
    assert found.zero_shot == pytest.approx(0.0)
    assert found.seconds == 0.25


@pytest.mark.parametrize("world", continual.TASKS)
def test_an_agent_goes_through_all_tasks(world, monkeypatch):
    small = {"compass": {"horizon": 2, "width": 3},
             "pendulum": {"horizon": 2, "n_samples": 4, "n_iterations": 1}}  # fmt: skip
    own = continual.TASKS[world]._replace(limit=5, options=small[world])
    monkeypatch.setitem(continual.TASKS, world, own)
    monkeypatch.setattr(continual, "FIRST", 10)
    settings = continual.Settings(envs=(world,), methods=("losse",), seeds=1, steps=12)
    runs = continual.final(settings, [])
    records = continual.execute(settings, runs)
    assert [each.method for each in records] == ["random", "alone", "losse"]
    assert np.shape(records[-1].details["returns"]) == (4, 4)
    assert len(records[-1].details["update_seconds"]) == 4
    (row,) = continual.table(records).rows
    assert row[:2] == (world, "losse")
    assert set(continual.draw(records)) == {"tasks"}


def test_actions_are_turned_from_quarter_to_quarter():
    world = continual.make_world("compass", {"limit": 50})
    moves = []
    for start in ((0.2, 0.2), (0.7, 0.2), (0.2, 0.7), (0.7, 0.7)):
        before, _ = world.reset(seed=0, options={"start": start})
        after, *_ = world.step(0)
        moves.append(tuple(np.sign(np.round(after - before, 3)).astype(int)))
    assert sorted(moves) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
