"""Discrete control and replay efficiency: which runs there are, and what becomes of a run."""

from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sbx")
pytest.importorskip("rliable")

from losse.dyna.divergence import DivergedModelError, DivergenceGuard
from losse.dyna.presets import PRESETS
from losse.paper.control import (
    classic_control,
    continuous_control,
    discrete_control,
    replay_efficiency,
    tasks,
)
from losse.paper.control.summary import interquartile
from losse.runs.experiment import SWEEP_SEED, folder_of
from losse.runs.record import Record, key_of
from losse.runs.runner import reproduce
from losse.runs.store import read_records

GRIDWORLD = "losse/Gridworld-v0"


def record(method, env, seed, score, **settings):
    times = [(10, 1.0), (20, 2.0 + seed)]
    details = {"update_seconds": 1.0, "imagination_seconds": 0.5, "cpu_seconds": times}
    return Record(
        experiment="discrete-control",
        method=method,
        setting=env,
        seed=seed,
        score=score,
        curve=[(10, score), (20, score)],
        settings=settings,
        details=details,
    )


def test_normalised_returns_run_from_zero_to_one():
    for task in tasks.TASKS.values():
        assert task.normalised(task.worst) == 0
        assert task.normalised(task.best) == 1


def test_the_papers_settings():
    settings = discrete_control.Settings(preset="paper")
    runs = discrete_control.sweep(settings)
    assert {run.options["learning_rate"] for run in runs} == {
        1e-2,
        3e-3,
        1e-3,
        3e-4,
        1e-4,
        3e-5,
        1e-5,
    }
    assert {run.options["planning_steps"] for run in runs} == {16}
    assert {run.options["update_every"] for run in runs} == {25}
    assert {run.options["agent"]["train_freq"] for run in runs} == {4}
    assert {run.options["agent"]["batch_size"] for run in runs} == {32}
    assert min(run.seed for run in runs) >= SWEEP_SEED
    assert len({run.name for run in runs}) == len(runs)


def test_the_rate_with_the_highest_score_is_taken_for_each_task():
    settings = discrete_control.Settings(
        preset="paper", methods=("losse",), envs=(GRIDWORLD, "Acrobot-v1"), seeds=2
    )
    scores = {(GRIDWORLD, 1e-3): 0.9, ("Acrobot-v1", 1e-4): 0.8}
    swept = [
        record(
            "losse", run.setting, run.seed, scores.get((run.setting, rate), 0.1), learning_rate=rate
        )
        for run in discrete_control.sweep(settings)
        for rate in [run.options["learning_rate"]]
    ]
    final = discrete_control.final(settings, swept)
    rates = {(run.setting, run.options["learning_rate"]) for run in final}
    assert rates == set(scores)
    assert [run.seed for run in final] == [0, 1, 0, 1]


def test_of_rates_that_are_equally_good_the_first_asked_for_is_taken():
    settings = discrete_control.Settings(rates=(3e-3, 1e-3), methods=("si",), envs=(GRIDWORLD,))
    swept = [
        record("si", GRIDWORLD, run.seed, 0.0, learning_rate=run.options["learning_rate"])
        for run in discrete_control.sweep(settings)
    ]
    for ended in (swept, swept[::-1]):  # whichever run was ready first
        final = discrete_control.final(settings, ended)
        assert {run.options["learning_rate"] for run in final} == {3e-3}


def test_without_a_choice_there_is_no_sweep():
    settings = discrete_control.Settings(rates=(3e-4,), methods=("online",), seeds=1)
    assert discrete_control.sweep(settings) == []
    assert {run.options["learning_rate"] for run in discrete_control.final(settings, [])} == {3e-4}


def test_ordinary_options_say_nothing_of_controls():
    # Records that exist are compared with these: another key would make them useless.
    assert tasks.options_of("losse", GRIDWORLD, None, 1e-3) == {
        "steps": 15_000,
        "learning_rate": 1e-3,
        "planning_steps": 16,
        "update_every": 25,
        "search_control": "uniform",
        "horizon": 1,
        "greedy_share": 0.5,
        "target_update_gradient_steps": 100,
        "rescale_obs": True,
        "eval_episodes": 5,
        "agent": tasks.AGENT,
        "model": {"regressor": "paper"},
    }


def test_controls_run_only_if_they_are_asked_for():
    runs = discrete_control.final(discrete_control.Settings(seeds=1), [])
    assert {run.method for run in runs} == set(discrete_control.METHODS)
    asked = discrete_control.Settings(seeds=1, methods=("oracle",))
    assert {run.method for run in discrete_control.final(asked, [])} == {"oracle"}
    with pytest.raises(ValueError, match=r"choose from: losse, .*, oracle"):
        discrete_control.final(discrete_control.Settings(methods=("magic",)), [])


def test_exploring_starts_are_kept_apart():
    settings = discrete_control.Settings(preset="paper", exploring_starts=True)
    runs = discrete_control.sweep(settings)
    assert all(run.options["exploring_starts"] is True for run in runs)
    assert all(run.options["train_limit"] == 100 for run in runs)
    usual = discrete_control.Settings(preset="paper")
    assert folder_of(usual, "discrete-control") == Path("results/discrete-control")
    assert folder_of(settings, "discrete-control") == Path(
        "results/discrete-control/exploring-starts"
    )


def test_an_oracle_with_exploring_starts_from_run_to_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "EVALUATIONS", 2)
    settings = discrete_control.Settings(
        methods=("oracle",),
        envs=("MountainCar-v0",),
        seeds=1,
        steps=160,
        workers=0,
        out=tmp_path,
        exploring_starts=True,
    )
    assert reproduce(discrete_control, settings, Mock()) == []
    (made,) = read_records(tmp_path)
    assert made.method == "oracle"
    assert made.settings["exploring_starts"] is True
    assert max(error for _, error in made.details["model_error"]) < 1e-5
    assert [row[0] for row in discrete_control.table([made]).rows] == ["oracle"]
    (axes,) = discrete_control.draw([made])["curves"].axes
    assert [line.get_label() for line in axes.lines] == ["perfect model"]


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="no task 'Pong'"):
        discrete_control.Settings(envs=("Pong",))


def test_a_run_becomes_a_record(monkeypatch):
    monkeypatch.setattr(tasks, "EVALUATIONS", 2)
    settings = discrete_control.Settings(
        methods=("losse",), envs=("MountainCar-v0",), seeds=1, steps=160
    )
    (run,) = discrete_control.final(settings, [])
    (made,) = discrete_control.execute(settings, [run])
    assert [step for step, _ in made.curve] == [80, 160]
    assert made.score == pytest.approx(0.0)  # nobody gets there in 160 steps
    assert made.details["gradient_steps"] == 17 * len(range(104, 161, 4))
    assert made.details["first_goal"] is None
    assert made.details["update_seconds"] > 0
    assert [step for step, _ in made.details["cpu_seconds"]] == [step for step, _ in made.curve]


def test_table_and_figure():
    records = [
        record(method, env, seed, seed / 10 + (method == "losse"))
        for method in ("losse", "online")
        for env in tasks.TASKS
        for seed in range(3)
    ]
    shown = discrete_control.table(records)
    assert [row[0] for row in shown.rows] == ["losse", "online"]
    assert shown.rows[0][1].mean == pytest.approx(1.1)
    assert shown.rows[0][4].startswith("1.1 (")
    figures = discrete_control.draw(records)
    assert list(figures) == ["curves", "interquartile"]
    (axes,) = figures["interquartile"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Losse", "network, online"]
    # Without the same seeds of every task there is no mean over tasks.
    assert list(discrete_control.draw(records[1:3])) == ["curves", "interquartile"]
    assert list(discrete_control.draw(records[:4])) == ["curves"]


def test_the_interquartile_mean_leaves_out_the_best_and_the_worst():
    scores = [0.0, 0.4, 0.6, 10.0]
    records = [record("losse", GRIDWORLD, seed, score) for seed, score in enumerate(scores)]
    summary = interquartile(records, [GRIDWORLD])
    assert summary.estimate == pytest.approx(0.5)
    assert summary.low < 0.5 < summary.high
    assert interquartile(records, [GRIDWORLD]) == summary  # nor do the intervals depend on chance
    assert interquartile(records[:1], [GRIDWORLD]) is None
    assert interquartile(records, [GRIDWORLD, "Acrobot-v1"]) is None
    others = [record("losse", "Acrobot-v1", seed, 1.0) for seed in (1, 2, 7)]
    both = interquartile(records + others, [GRIDWORLD, "Acrobot-v1"])  # of seeds 1 and 2
    assert both.estimate == pytest.approx(0.8)


def test_replay_efficiency_varies_the_size_of_the_memory():
    settings = replay_efficiency.Settings(sizes=(50, 200), seeds=2)
    runs = replay_efficiency.final(settings, [])
    assert [(run.method, run.setting) for run in runs] == (
        [("losse", 0)] * 2 + [("coreset", 50)] * 2 + [("coreset", 200)] * 2
    )
    assert runs[-1].options["model"] == {"coreset_size": 200}
    records = [record(run.method, run.setting, run.seed, 0.5) for run in runs]
    assert [row[:2] for row in replay_efficiency.table(records).rows] == [
        ("losse", 0),
        ("coreset", 50),
        ("coreset", 200),
    ]
    assert list(replay_efficiency.draw(records)) == ["efficiency"]


def test_classic_control_compares_presets_with_the_matched_control(tmp_path):
    settings = classic_control.Settings(
        envs=("Acrobot-v1",), seeds=1, steps=120, workers=0, out=tmp_path
    )
    assert reproduce(classic_control, settings, Mock()) == []
    records = read_records(tmp_path)
    assert [made.method for made in records] == ["losse", "model-free-matched"]
    assert len({made.details["gradient_steps"] for made in records}) == 1
    shown = classic_control.table(records)
    assert [row[:3] for row in shown.rows] == [
        ("Acrobot-v1", "losse", 120),
        ("Acrobot-v1", "model-free-matched", 120),
    ]
    assert shown.rows[0][4].mean == pytest.approx(-500 + 430 * records[0].curve[-1][1])
    assert list(classic_control.draw(records)) == ["curves"]


def test_options_of_presets_say_nothing_of_what_is_not_in_use():
    # As above: records that exist would be useless with another key.
    tuned = PRESETS["Hopper-v5"]
    used = tasks.preset_options(tuned, None, 10)["dyna"]
    assert used == {k: v for k, v in asdict(tuned.dyna).items() if k != "sure_share"}
    unsure = replace(tuned, dyna=replace(tuned.dyna, sure_share=0.9))
    assert tasks.preset_options(unsure, None, 10)["dyna"] == used | {"sure_share": 0.9}


def test_published_runs_are_those_that_the_experiment_asks_for():
    """A new option that is not in use must not change the keys of what was computed before."""
    folder = Path(__file__).parents[2] / "results" / continuous_control.NAME
    for record in read_records(folder):
        options = continuous_control.options_of(record.method, str(record.setting), None)
        assert key_of(record.method, record.setting, record.seed, options) == record.key


def test_a_control_ends_rows_where_losse_is_unsure_and_differs_in_nothing_else():
    plainly, sure = (
        continuous_control.options_of(method, "Hopper-v5", None)
        for method in ("losse", "losse-sure")
    )
    assert sure == plainly | {"dyna": plainly["dyna"] | {"sure_share": 0.9}}


def test_classic_control_has_a_task_for_every_preset():
    assert set(classic_control.TASKS) | set(continuous_control.TASKS) == set(PRESETS)


def test_continuous_control_trains_sac_with_models(tmp_path):
    pytest.importorskip("mujoco")
    settings = continuous_control.Settings(
        methods=("losse", "oracle"),
        envs=("InvertedPendulum-v5",),
        steps=210,
        seeds=1,
        workers=0,
        out=tmp_path,
    )
    assert reproduce(continuous_control, settings, Mock()) == []
    records = read_records(tmp_path)
    assert [record.method for record in records] == ["losse", "oracle"]
    assert all(record.settings["termination"] == "known" for record in records)
    assert not list((tmp_path / ".running").iterdir())
    shown = continuous_control.table(records)
    assert [row[:2] for row in shown.rows] == [
        ("InvertedPendulum-v5", name) for name in ("losse", "oracle")
    ]
    truth = records[-1].details["model_error"]
    assert max(error for _, error in truth) < 1e-5


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    settings = continuous_control.Settings(
        methods=("model-free",), envs=("InvertedPendulum-v5",), steps=120, seeds=1, out=tmp_path
    )
    (run,) = continuous_control.final(settings, [])
    task = continuous_control.TASKS[run.setting]
    half = replace(run, options={**run.options, "steps": 60})
    with monkeypatch.context() as kept:
        kept.setattr(tasks.shutil, "rmtree", lambda path: None)
        tasks.train_preset(half, task, tmp_path)
    record = tasks.train_preset(run, task, tmp_path)
    assert [step for step, _ in record.curve][-1] == 120
    assert record.curve[0][0] == 12  # of the part before


def test_a_run_whose_model_diverges_has_a_record_that_says_so(tmp_path, monkeypatch):
    """Evaluations after that are those of the agent as it was."""
    pytest.importorskip("mujoco")
    settings = continuous_control.Settings(
        methods=("losse",), envs=("InvertedPendulum-v5",), steps=210, seeds=1, out=tmp_path
    )
    (run,) = continuous_control.final(settings, [])
    asked = []

    def require(self, imagined, model):
        asked.append(1)
        if model.n_transitions >= 150:
            raise DivergedModelError("too far")

    monkeypatch.setattr(DivergenceGuard, "require", require)
    record = tasks.train_preset(run, continuous_control.TASKS[run.setting], tmp_path)
    assert asked
    assert record.details["diverged"] == "too far"
    steps, returns = zip(*record.curve, strict=True)
    assert (len(steps), steps[-1]) == (continuous_control.EVALUATIONS, 210)
    found = sum(step <= 150 for step in steps)
    assert set(returns[found:]) == {returns[found - 1]}
    shown = continuous_control.table([record])
    assert shown.rows[0][-1] == "1 of 1"
    assert "errors" in continuous_control.draw([record, replace(record, seed=1)])
