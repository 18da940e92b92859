"""Journals: what a run tells of itself while it goes on, and that this changes nothing."""

import time

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.spaces import Box, Discrete

from losse import FTLRegressor, LosseEncoder
from losse.planning.options import PlanningOptions
from losse.planning.run import run
from losse.runs import probe as probes
from losse.runs.following import PlanningFollower, TrainingFollower
from losse.runs.journal import LIVE, PROBE, Journal, read_journal
from losse.watch.watched import read_probe
from losse.world import LosseWorldModel, Transitions

ABOUT = {"experiment": "toy", "method": "losse", "setting": "a", "seed": 0, "of": 100}


def test_a_journal_says_how_its_run_ended(tmp_path):
    with Journal(tmp_path / "a", ABOUT):
        assert read_journal(tmp_path / "a" / LIVE)["state"] == "running"
    assert read_journal(tmp_path / "a" / LIVE)["state"] == "finished"
    with pytest.raises(ValueError, match="lost"), Journal(tmp_path / "b", ABOUT):
        raise ValueError("lost")
    assert read_journal(tmp_path / "b" / LIVE)["reason"] == "ValueError: lost"
    with pytest.raises(KeyboardInterrupt), Journal(tmp_path / "c", ABOUT):
        raise KeyboardInterrupt
    assert read_journal(tmp_path / "c" / LIVE)["state"] == "stopped"


def test_a_journal_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with Journal(tmp_path / "file", ABOUT) as journal:
        journal.write({"steps": 1})
        journal.write_probe({})


def test_a_journal_of_many_points_stays_small(tmp_path):
    with Journal(tmp_path, ABOUT) as journal:
        journal.write({"curve": [(step, 0.5) for step in range(50_000)]})
    assert (tmp_path / LIVE).stat().st_size < 100_000


def test_planning_is_the_same_with_a_journal(tmp_path):
    options = PlanningOptions(
        env="Pendulum-v1", steps=260, learning_starts=200, horizon=4, samples=8, iterations=1
    )
    _, alone = run(options)
    with Journal(tmp_path, ABOUT) as journal:
        follower = PlanningFollower(journal)
        _, followed = run(options, report=follower.report, callbacks=[follower])
    assert followed.curve == alone.curve
    assert followed.errors == alone.errors
    told, probe = read_journal(tmp_path / LIVE), read_probe(tmp_path / PROBE)
    assert (told["steps"], told["decisions"]) == (260, followed.decisions)
    assert probe["step"] == 260
    assert len(probe["episode"]["obs"]) == 60  # the first episode was over after 200 steps


def test_training_is_the_same_with_a_journal(tmp_path):
    pytest.importorskip("sbx")
    from losse.dyna import DynaOptions
    from losse.dyna.options import Training
    from losse.dyna.training import train

    training = Training(
        env="CartPole-v1",
        backend="sb3",
        steps=200,
        eval_every=100,
        eval_episodes=1,
        dyna=DynaOptions(planning_steps=1),
        agent_options={"buffer_size": 1000, "policy_kwargs": {"net_arch": [8]}},
        model_options={"regressor": FTLRegressor(LosseEncoder(5, n_bins=5), solver="sparse")},
    )
    alone = train(training)
    with Journal(tmp_path, ABOUT) as journal:
        follower = TrainingFollower(journal)
        followed = train(training, observer=follower, callbacks=[follower])
    assert followed.curve == alone.curve
    assert followed.errors == alone.errors
    told, probe = read_journal(tmp_path / LIVE), read_probe(tmp_path / PROBE)
    assert [step for step, _ in told["curve"]] == [100, 200]
    assert (told["state"], told["steps"]) == ("finished", 200)
    assert 150 < len(probe["sample"]["steps"]) < 200  # all but those just learned


def test_a_probe_keeps_a_fair_sample_with_predictions_from_before_learning(monkeypatch):
    monkeypatch.setattr(probes, "SAMPLE", 50)
    regressor = FTLRegressor(LosseEncoder(5, n_bins=5))
    model = LosseWorldModel(Box(0, 1, (1,)), Discrete(1), regressor=regressor)
    probe = probes.Probe(model)
    for step in range(0, 500, 25):
        obs = np.linspace(0.2, 0.7, 25, dtype=np.float32)[:, None]
        rows = Transitions(obs, np.zeros(25, int), np.zeros(25), obs + 0.1, np.zeros(25, bool))
        probe.see(rows, step)
        model.update(*rows)
    sample = probe.look(500)["sample"]
    assert len(sample["steps"]) == 50
    assert 150 < np.mean(sample["steps"]) < 325
    first = [i for i, step in enumerate(sample["steps"]) if step == 0]
    for i in first:
        assert sample["then"][i] == pytest.approx(sample["obs"][i])  # it knew nothing yet
        assert sample["then_std"][i] == [None]  # infinite
        assert sample["now"][i] == pytest.approx(sample["reached"][i], abs=0.02)


def test_a_probe_asks_no_certainty_where_that_takes_minutes(monkeypatch):
    monkeypatch.setattr(probes, "STD_FEATURES", 10)
    model = LosseWorldModel(Box(0, 1, (1,)), Discrete(1))
    obs = np.full((5, 1), 0.5, np.float32)
    rows = Transitions(obs, np.zeros(5, int), np.zeros(5), obs, np.zeros(5, bool))
    model.update(*rows)
    probe = probes.Probe(model)
    probe.see(rows)
    began = time.perf_counter()
    assert probe.look(5)["sample"]["now_std"] == [[None]] * 5
    assert time.perf_counter() - began < 1
