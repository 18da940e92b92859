"""`losse train`: what it writes, and what it says when something is wrong."""

import pytest

pytest.importorskip("tyro")
pytest.importorskip("stable_baselines3")

from losse.cli import main
from losse.cli.train import Settings
from losse.dyna.run import latest_checkpoint
from losse.runs.store import read_records

OPTIONS = [
    *("--env", "CartPole-v1", "--backend", "sb3", "--planning-steps", "1"),
    *("--eval-every", "50", "--eval-episodes", "2", "--hidden", "8", "8", "--batch-size", "8"),
]


def test_a_training_leaves_record_figure_agent_and_model(tmp_path, capsys):
    main(["train", *OPTIONS, "--steps", "100", "--out", str(tmp_path)])
    (record,) = read_records(tmp_path)
    assert (record.experiment, record.method, record.setting) == ("train", "losse", "CartPole-v1")
    assert [step for step, _ in record.curve] == [50, 100]
    assert record.details["first_end"] > 0
    assert (tmp_path / "learning_curve.png").stat().st_size > 1000
    saved = {path.name for path in latest_checkpoint(tmp_path / "losse_seed0").iterdir()}
    assert {"agent.zip", "replay_buffer.pkl", "world_model.losse"} <= saved
    assert "step 100: return " in capsys.readouterr().out

    with pytest.raises(SystemExit):
        main(["train", *OPTIONS, "--steps", "150", "--out", str(tmp_path)])
    assert "--resume" in capsys.readouterr().err
    main(["train", *OPTIONS, "--steps", "150", "--out", str(tmp_path), "--resume"])
    (record,) = read_records(tmp_path)
    assert [step for step, _ in record.curve] == [50, 100, 150]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "Nowhere-v0"], "Nowhere"),
        (["--env", "Pendulum-v1", "--agent", "dqn"], "choose from: sac"),
        (["--env", "CartPole-v1", "--agent", "qrdqn", "--backend", "sbx"], "choose from: sb3"),
        (["--env", "CartPole-v1", "--real-share", "much"], "real_share='much'"),
        (["--env", "CartPole-v1", "--steps", "0"], "steps=0"),
    ],
)
def test_mistakes_are_explained_in_a_line(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *arguments, "--out", str(tmp_path)])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_the_folder_is_named_after_environment_and_agent():
    folder = Settings(env="losse/Gridworld-v0").folder()
    assert folder.as_posix() == "results/train/losse-Gridworld-v0_dqn"
