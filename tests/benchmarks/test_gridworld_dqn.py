"""The choice of the Gridworld's defaults: who reaches the goal is counted rightly, and once."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from benchmarks import gridworld_dqn as bench
from losse.runs.experiment import Run
from losse.runs.store import Store

ROOT = Path(__file__).parents[2]


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

    def learn(runs):
        learned.extend(runs)
        return [run.record(0.5, seconds=1.0, curve=[(1, 0.0), (2, 1.0)]) for run in runs]

    monkeypatch.setattr(bench, "learn", learn)
    settings = {"limits": (500,), "workers": 0, "out": tmp_path}
    bench.run(bench.Settings(**settings, seeds=1))
    bench.run(bench.Settings(**settings, seeds=2))
    assert [(run.setting, run.seed) for run in learned] == [
        ("step-500", 0), ("sparse-500", 0), ("step-500", 1), ("sparse-500", 1),
    ]  # fmt: skip
    assert "| step | 500 | 0.5 ± 0 | 2 of 2 |" in (tmp_path / "table.md").read_text()


def test_the_published_records_are_those_of_the_defaults():
    settings = bench.Settings()
    known = {record.key for record in Store(ROOT / settings.out).read()}
    options = bench.options_of(settings, "step", 500)
    assert Run("gridworld-dqn", "dqn", "step-500", 0, options).key in known


def test_an_agent_that_fails_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "learn", lambda runs: 1 / 0)
    with pytest.raises(SystemExit):
        bench.run(bench.Settings(workers=0, out=tmp_path))
    assert "ZeroDivisionError" in capsys.readouterr().out
