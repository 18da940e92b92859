"""`losse plan`: what it writes, what it shows, and what it says when something is wrong."""

import gymnasium
import pytest

pytest.importorskip("tyro")
pytest.importorskip("stable_baselines3")

from losse.cli import main
from losse.cli.plan import Settings
from losse.planning import PlanningAgent
from losse.runs.store import read_records

QUICK = ["--learning-starts", "100", "--horizon", "3", "--samples", "10"]
OPTIONS = ["--env", "Pendulum-v1", *QUICK, "--iterations", "1"]


def test_a_run_leaves_record_figure_and_agent_and_can_go_on(tmp_path, capsys):
    main(["plan", *OPTIONS, "--steps", "210", "--out", str(tmp_path)])
    (record,) = read_records(tmp_path)
    assert (record.experiment, record.method, record.setting) == ("plan", "losse", "Pendulum-v1")
    assert [step for step, _ in record.curve] == [200]
    assert record.details["decisions"] == 110
    assert record.settings["horizon"] == 3
    assert (tmp_path / "learning_curve.png").stat().st_size > 1000
    saved = tmp_path / "losse_seed0" / "agent.losse"
    loaded = PlanningAgent.load(saved, gymnasium.make("Pendulum-v1"))
    assert loaded.world_model.n_transitions == 210
    shown = capsys.readouterr().out
    assert f"step 200: episode 1 returned {record.curve[0][1]:.1f}" in shown
    assert "ms a decision" in shown

    with pytest.raises(SystemExit):
        main(["plan", *OPTIONS, "--steps", "420", "--out", str(tmp_path)])
    assert "--resume" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", *OPTIONS, "--discount", "0.9", "--out", str(tmp_path), "--resume"])
    assert "discount=0.9 is not that of the run saved" in capsys.readouterr().err
    main(["plan", *OPTIONS, "--steps", "420", "--out", str(tmp_path), "--resume"])
    (record,) = read_records(tmp_path)
    assert [step for step, _ in record.curve] == [200, 410]  # a new episode began at 210
    assert record.details["decisions"] == 320


def test_discrete_actions_and_a_film(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr("losse.cli.plan.animation.MOST_FRAMES", 3)
    options = ["--env", "CartPole-v1", *QUICK, "--steps", "120", "--out", str(tmp_path)]
    main(["plan", *options, "--gif", "--planner", "beam"])
    with Image.open(tmp_path / "losse-beam_seed0.gif") as film:
        assert film.n_frames == 3
    (record,) = read_records(tmp_path)
    assert record.method == "losse-beam"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "Nowhere-v0"], "Nowhere"),
        (["--env", "CartPole-v1", "--planner", "icem"], "ICEM cannot plan the actions Discrete"),
        (["--env", "CartPole-v1", "--iterations", "2"], "iterations=2 have no use"),
        (["--env", "Pendulum-v1", "--horizon", "0"], "horizon=0"),
        (["--env", "Pendulum-v1", "--samples", "0"], "samples=0"),
        (["--env", "Pendulum-v1", "--steps", "0"], "steps=0"),
        (["--env", "Pusher-v5", "--model", "oracle"], "not known"),
    ],
)
def test_mistakes_are_explained_in_a_line(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan", *arguments, "--out", str(tmp_path)])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_stopped_run_is_saved_and_goes_on(tmp_path, capsys, monkeypatch):
    asked = iter(range(1000))
    monkeypatch.setattr(
        "losse.cli.train.stopping.StopRequest.made", lambda self: next(asked) >= 120
    )
    arguments = ["plan", *OPTIONS, "--steps", "300", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 130
    assert "with --resume goes on" in capsys.readouterr().out
    monkeypatch.undo()
    main([*arguments, "--resume"])
    (record,) = read_records(tmp_path)
    assert record.details["decisions"] == 200


def test_the_folder_is_named_after_the_environment():
    folder = Settings.read(["--env", "losse/Gridworld-v0"]).folder()
    assert folder.as_posix() == "results/plan/losse-Gridworld-v0"
