"""The choice of the Gridworld's defaults: who reaches the goal is counted rightly, and once."""

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from benchmarks import gridworld_dqn as bench
from losse.runs.record import Record


class Guide:
    """Knows the way through the gap."""

    def predict(self, obs, deterministic):
        x, y = obs.T
        up = (y < 0.43) | ((x > 0.62) & (y <= 0.96))
        right = (y < 0.48) | (x > 0.62)
        return np.where(up, 0, np.where(right, 1, 2)), None


class Stubborn:
    """Goes right for ever, into the barrier."""

    def predict(self, obs, deterministic):
        return np.ones(len(obs), dtype=int), None


def test_only_those_who_know_the_way_arrive():
    assert bench.arrivals(Guide(), seed=0) == 1.0
    assert bench.arrivals(Stubborn(), seed=0) == 0.0


def test_a_run_that_has_its_record_is_not_repeated(tmp_path, monkeypatch, capsys):
    learned = []

    def learn(job):
        learned.append(job)
        return Record(experiment="gridworld-dqn", method="dqn", setting=job.setting,
                      seed=job.seed, score=0.5, curve=[(1, 0.0), (2, 1.0)])  # fmt: skip

    monkeypatch.setattr(bench, "learn", learn)
    settings = {"limits": (500,), "workers": 0, "out": tmp_path}
    bench.run(bench.Settings(**settings, seeds=1))
    bench.run(bench.Settings(**settings, seeds=2))
    assert [(job.setting, job.seed) for job in learned] == [
        ("step-500", 0), ("sparse-500", 0), ("step-500", 1), ("sparse-500", 1),
    ]  # fmt: skip
    assert "| step | 500 | 0.5 ± 0 | 2 of 2 |" in (tmp_path / "table.md").read_text()


def test_an_agent_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "learn", lambda job: 1 / 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        bench.run(bench.Settings(workers=0, out=tmp_path))
