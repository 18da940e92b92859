"""The profile of Dyna: every moment belongs to one part, and promises are judged by records."""

import pytest

pytest.importorskip("sbx")

from benchmarks.dyna import bench as dyna
from benchmarks.dyna import profile, report
from benchmarks.dyna.profile import (
    ACTING,
    EVALUATION,
    GRADIENT,
    IMPORTS,
    LEARNING,
    MODEL,
    PARTS,
    STEP,
    Job,
)
from losse.paper.control import continuous_control, tasks
from losse.runs.record import Record
from losse.runs.store import read_records
from losse.runs.workers import Failure

GRIDWORLD, CHEETAH = "losse/Gridworld-v0", "HalfCheetah-v5"


def record(job, model=1.0, others=4.0, cpu=1.0):
    """A run whose model took so long, beside all other parts of the training."""
    parts = {ACTING: (others / 2, others / 2), GRADIENT: (others / 2, others / 2),
             STEP: (model / 2, cpu * model / 2), LEARNING: (model / 2, cpu * model / 2),
             EVALUATION: (30.0, 30.0)}  # fmt: skip
    steps = job.steps or report.TASKS[job.env].steps
    return Record(
        experiment="bench-dyna", method=job.model, setting=job.env, seed=job.seed,
        score=profile.share(parts), settings={"steps": steps},
        seconds=sum(wall for wall, _ in parts.values()),
        details={"parts": parts, "first_calls": {STEP: (0.1, 0.1)}, "second_half": parts},
    )  # fmt: skip


def verdicts(*records):
    return [m.met for m in report.judge(records) if m.target]


def test_a_moment_belongs_to_the_innermost_part(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(profile, "_now", lambda: (now[0], now[0] / 2))

    def work(seconds, then=lambda: None):
        now[0] += seconds
        then()
        now[0] += seconds

    clock = profile.Clock("outer")
    inner = clock.timed("inner", lambda: work(3))
    middle = clock.timed("middle", work)
    work(1)
    middle(10, inner)
    with pytest.raises(TypeError):
        middle(None)
    middle(100)
    assert clock.read() == {"outer": (2, 1), "middle": (220, 110), "inner": (6, 3)}
    assert clock.first == {"inner": (6, 3), "middle": (20, 10)}


@pytest.mark.parametrize(("env", "steps"), [(GRIDWORLD, 160), ("InvertedPendulum-v5", 240)])
def test_the_parts_of_a_run_are_the_whole_run(monkeypatch, env, steps):
    import sbx

    if env in continuous_control.TASKS:
        pytest.importorskip("mujoco")
    trains = sbx.DQN.train, sbx.SAC.train
    for experiment in (tasks, continuous_control):
        monkeypatch.setattr(experiment, "EVALUATIONS", 2)
    clock = profile.Clock(IMPORTS)
    made = profile.profile(Job(env, "losse", steps=steps), clock)
    assert (sbx.DQN.train, sbx.SAC.train) == trains
    whole, second = made.details["parts"], made.details["second_half"]
    assert tuple(whole) == PARTS
    assert profile.total(whole) == pytest.approx(made.seconds, abs=0.01)
    assert all(0 <= second[part][0] <= whole[part][0] for part in PARTS)
    assert all(first[0] <= whole[part][0] for part, first in made.details["first_calls"].items())
    model = profile.total(whole, MODEL)
    assert made.score == pytest.approx(profile.share(whole), abs=1e-3)
    # The library's own clock stands within these parts.
    inside = made.details["update_seconds"] + made.details["imagination_seconds"]
    assert 0 < inside <= model + 0.01
    text = report.table([made])
    assert all(f"| {part} |" in text for part in PARTS)


def test_a_share_is_one_of_the_training_by_both_clocks():
    job = Job("Acrobot-v1", "losse")
    assert record(job, model=1, others=3).score == 0.25
    assert verdicts(record(job, model=1, others=3)) == [True]
    assert verdicts(record(job, model=1.1, others=3)) == [False]
    assert verdicts(record(job, model=1, others=3, cpu=2.0)) == [False]


def test_with_sac_the_model_is_measured_by_the_agent_and_by_the_network():
    ours = record(Job(CHEETAH, "losse"), model=1, others=4)
    assert verdicts(ours) == [True]
    assert verdicts(record(Job(CHEETAH, "losse"), model=1.1, others=4)) == [False]
    assert verdicts(record(Job(CHEETAH, "losse"), model=1, others=4, cpu=1.1)) == [False]
    assert verdicts(ours, record(Job(CHEETAH, "full-replay"), model=1.1)) == [True, True]
    assert verdicts(ours, record(Job(CHEETAH, "full-replay"), model=0.9)) == [True, False]
    others = (Job("Hopper-v5", "full-replay"), Job(CHEETAH, "full-replay", seed=1),
              Job(CHEETAH, "full-replay", steps=9), Job(CHEETAH, "online"))  # fmt: skip
    assert verdicts(ours, *map(record, others)) == [True]


def test_only_the_whole_gridworld_is_judged_by_its_seconds():
    fast, slow = record(Job(GRIDWORLD, "losse")), record(Job(GRIDWORLD, "losse"), others=30.0)
    assert verdicts(fast) == [True, True]
    assert verdicts(slow) == [True, False]
    assert verdicts(record(Job(GRIDWORLD, "losse", steps=100), others=30.0)) == [True]
    assert verdicts(record(Job(GRIDWORLD, "online"), model=9.0)) == []


def test_a_run_replaces_its_record_and_keeps_the_others(tmp_path, monkeypatch, capsys):
    model_seconds = iter([1.0, 1.0, 2.0])
    monkeypatch.setattr(
        dyna, "run_jobs",
        lambda function, jobs, workers: [(j, record(j, next(model_seconds))) for j in jobs],
    )  # fmt: skip
    dyna.run(dyna.Settings(envs=(GRIDWORLD, "Acrobot-v1"), results=tmp_path))
    dyna.run(dyna.Settings(envs=("Acrobot-v1",), results=tmp_path))
    scores = {str(r.setting): r.score for r in read_records(tmp_path)}
    assert scores == {GRIDWORLD: 0.2, "Acrobot-v1": pytest.approx(1 / 3)}
    text = (tmp_path / "table.md").read_text()
    assert "| Gridworld | losse | 15,000 |" in text
    assert "| 33.3% | 33.3% |" in text
    assert (tmp_path / "profile.png").stat().st_size > 1000
    assert "Gridworld, losse: 35.0 s, the model's share 20.0%" in capsys.readouterr().out


def test_short_runs_do_not_replace_the_published_records(tmp_path):
    assert dyna.Settings(results=tmp_path).folder == tmp_path
    assert dyna.Settings(steps=9, results=tmp_path).folder == tmp_path / "steps-9"


def test_a_run_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(dyna, "run_jobs", lambda *_, workers: [(None, Failure("out of memory"))])
    with pytest.raises(RuntimeError, match="out of memory"):
        dyna.run(dyna.Settings(results=tmp_path))


@pytest.mark.parametrize("wrong", [{"envs": ("Pong",)}, {"models": ("gpt",)}, {"steps": 0}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        dyna.Settings(**wrong)
