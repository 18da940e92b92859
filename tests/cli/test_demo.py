"""The demo: planning and forgetting, or agents of several seeds; live or in plain lines."""

import contextlib
import io
import re

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("stable_baselines3")
pytest.importorskip("sbx")

from rich.console import Console

from losse.cli import main
from losse.cli.demo import Settings, pendulum
from losse.cli.demo import agents as demo_agents
from losse.cli.demo.forgetting import WORLD_MODELS, runs_of
from losse.cli.demo.views import AgentView, MapsView, draw_map
from losse.dyna.options import Training
from losse.dyna.progress import TrainingProgress
from losse.envs.gridworld_dynamics import N_ACTIONS
from losse.paper.forgetting import experiment as forgetting
from losse.paper.forgetting.places import CELLS, Frame, Places
from losse.runs.journal import LIVE
from losse.runs.store import read_records

STEPS, SEED = 126, 3  # not a multiple of 4, after which a DQN learns


def told(*arguments):
    """What a demo says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["demo", *map(str, arguments)])
    return said.getvalue()


def test_planning_comes_first_and_then_the_picture_of_forgetting(tmp_path, monkeypatch):
    def film(agent, options, path):
        assert agent.num_timesteps == options.steps
        path.write_bytes(bytes(2000))  # test_plan draws a real one
        return path

    monkeypatch.setattr(pendulum, "animate", film)
    said = told("--steps", 230, "--seed", SEED, "--out", tmp_path)
    (planned,) = read_records(tmp_path / "planning")
    assert (planned.setting, planned.seed) == ("Pendulum-v1", SEED)
    assert planned.details["decisions"] == 30
    assert f"The random episode returned {planned.curve[0][1]:.0f}" in said
    models = {record.method: record for record in read_records(tmp_path / "models")}
    assert set(models) == set(WORLD_MODELS)
    for record in models.values():
        assert f"| {record.method} | {record.score:.1%} | " in said
    assert said.index("pendulum") < said.index("Which of them forgets")
    for name in ("planning/learning_curve.png", "planning/episode.gif", "forgetting.png"):
        assert (tmp_path / name).stat().st_size > 1000
        assert str(tmp_path / name) in said
    assert (tmp_path / "planning" / f"losse_seed{SEED}" / LIVE).exists()  # for losse watch


def test_dyna_shows_several_seeds_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_agents, "EVALUATIONS", 2)
    said = told("dyna", "--steps", STEPS, "--seed", SEED, "--seeds", 2, "--out", tmp_path)
    records = read_records(tmp_path / "agents")
    assert [(r.method, r.seed) for r in records] == [
        (method, seed) for method in demo_agents.METHODS for seed in (SEED, SEED + 1)
    ]
    for record in records:
        assert record.setting == "losse/Gridworld-v0"
        assert [step for step, _ in record.curve] == [63, 126]
        assert f"| {record.method} | {record.seed} | {record.curve[-1][1]:.1f} | " in said
    matched = [record.details["gradient_steps"] for record in records]
    assert len(set(matched)) == 1
    assert matched[0] > 0
    assert said.count("| all | ") == 2
    assert (tmp_path / "agents" / "learning_curve.png").exists()


def test_the_stream_is_that_of_the_experiment():
    (run, *_) = runs_of(None, 0)
    assert run.options["steps"] == forgetting.PRESETS["paper"].steps  # seed 0 of the records
    assert run.options["epsilon"] == forgetting.EPSILON


def test_ctrl_c_ends_the_demo_in_a_line(monkeypatch, tmp_path, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pendulum, "run_agent", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert "Interrupted" in capsys.readouterr().out


@pytest.fixture
def frame():
    """A moment after visits to the lower left, with one wrong prediction there."""
    places = Places()
    seen = (places.positions < 0.3).all(axis=1)
    errors = np.zeros(len(seen))
    errors[0] = 1.0
    return Frame(100, errors, seen, seen & (places.actions == 1), places.possible, [], [])


def training_and_progress():
    training = Training(env="losse/Gridworld-v0", steps=1000, eval_every=100)
    progress = TrainingProgress(
        steps=300,
        curve=((100, -200.0), (200, -119.0), (300, -38.0)),
        errors=((200, 0.5), (300, 0.25)),
        first_end=150,
        seconds=10.0,
        update_seconds=1.5,
    )
    return training, progress


def test_on_a_terminal_an_agent_has_a_bar_for_each_evaluation():
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=80)
    training, progress = training_and_progress()
    with AgentView(console, training) as view:
        view.evaluated(progress)
    shown = console.file.getvalue()
    assert "▁▅█·······" in shown
    assert "█▅" in shown
    assert "step 300 of 1000, 10 s, 15% of it the model's" in shown
    assert "goal first reached at step 150" in shown


def test_without_a_terminal_an_agent_has_ten_lines_at_most():
    console = Console(file=io.StringIO(), force_terminal=False)
    training, progress = training_and_progress()
    with AgentView(console, training) as view:
        for steps in range(10, 1001, 10):
            view.evaluated(TrainingProgress(steps, progress.curve, first_end=None))
    title, *lines = console.file.getvalue().splitlines()
    assert title == "DQN with Losse, seed 0:"
    assert len(lines) == 10
    assert lines[-1] == "step 1000: return -38.0, goal not yet reached"


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_the_maps_are_shown_side_by_side(frame, width):
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=24
    )
    with MapsView(console, ["online", "losse"], steps=15_000) as view:
        view.show([frame._replace(step=15_000), frame])
    head, titles, _, *maps = re.sub(r"\x1b\[[\d?;]*[A-Za-z]", "", console.file.getvalue()).split(
        "\n"
    )
    assert head.startswith("step 15000 of 15000")
    assert titles.startswith("online: ")
    assert "losse: " in titles
    assert {len(line) for line in maps[: CELLS - 1]} == {len(titles)}
    assert len(titles) <= width
    assert maps[CELLS - 1].startswith("●")


def test_without_a_terminal_there_is_a_line_for_all_models(frame):
    console = Console(file=io.StringIO(), force_terminal=False)
    with MapsView(console, ["online", "losse"], steps=100) as view:
        view.show([frame, frame])
    assert console.file.getvalue().startswith("step 100: online: 0.7% wrong where it was, ")


def test_the_map_has_the_barrier_the_visits_and_the_errors(frame):
    lines = draw_map(frame).plain.splitlines()
    assert len(lines) == CELLS
    assert {len(line) for line in lines} == {2 * CELLS}
    assert lines[-1].startswith("●")
    assert draw_map(frame).plain.count("●") == 1
    everything = frame._replace(errors=1.0 * frame.seen)
    assert draw_map(everything).plain.count("●") == frame.seen.sum() / N_ACTIONS
    elsewhere = frame._replace(errors=1.0 * ~frame.seen)
    assert draw_map(elsewhere).plain.count("●") == 0


@pytest.mark.parametrize(("option", "value"), [("steps", 0), ("seed", -1), ("seeds", 0)])
def test_nonsense_is_refused(option, value, capsys):
    with pytest.raises(ValueError, match=f"{option} must be"):
        Settings(**{option: value})
    with pytest.raises(SystemExit) as stop:
        main(["demo", f"--{option}", str(value)])
    assert stop.value.code == 2
    assert f"{option} must be" in capsys.readouterr().err
