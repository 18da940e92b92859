"""`losse train`: what it writes, and what it says when something is wrong."""

import io
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

pytest.importorskip("tyro")
pytest.importorskip("stable_baselines3")

from rich.console import Console

from losse.cli import main
from losse.cli.train.command import Settings
from losse.cli.train.view import TrainView
from losse.dyna.checkpoint import latest_checkpoint
from losse.dyna.options import Training
from losse.dyna.progress import COMPILING, MAKING, TrainingProgress
from losse.runs.journal import LIVE, PROBE
from losse.runs.store import read_records

OPTIONS = [
    *("--env", "CartPole-v1", "--backend", "sb3", "--planning-steps", "1", "--preset", "none"),
    *("--eval-every", "50", "--eval-episodes", "2", "--hidden", "8", "8", "--batch-size", "8"),
]


def test_a_preset_is_used_and_shown_whatever_the_number_of_steps(tmp_path, capsys):
    given = [
        "--env",
        "CartPole-v1",
        "--backend",
        "sb3",
        "--hidden",
        "8",
        "8",
        "--eval-episodes",
        "2",
    ]
    main(["train", *given, "--steps", "40", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "Preset for CartPole-v1 (--preset none: plain defaults): " in shown
    assert "train_freq 64" in shown
    (record,) = read_records(tmp_path)
    assert math.isfinite(record.score)


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


def signal_at(monkeypatch, method, when, *signals):
    """Let signals arrive when the view is told something for the first time."""
    tell, waiting = getattr(TrainView, method), [True]

    def told(self, what):
        if what == when and waiting:
            waiting.clear()
            for one in signals:
                signal.raise_signal(one)
        tell(self, what)

    monkeypatch.setattr(TrainView, method, told)


@pytest.mark.parametrize(
    ("sent", "name", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_a_stopped_run_is_saved_and_goes_on(sent, name, code, tmp_path, monkeypatch, capsys):
    signal_at(monkeypatch, "stepped", 70, sent)
    arguments = ["train", *OPTIONS, "--steps", "100", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == code
    shown = capsys.readouterr().out
    saved = tmp_path / "losse_seed0"
    assert f"Agent, world model and replay buffer after 72 steps: {saved}" in shown
    assert f"The same command with --resume --out {tmp_path} goes on" in shown
    assert f"Stopped by {name} at step 72 of 100." in shown
    (record,) = read_records(tmp_path)
    assert [step for step, _ in record.curve] == [50]
    main([*arguments, "--resume"])
    (record,) = read_records(tmp_path)
    assert [step for step, _ in record.curve] == [50, 100]
    assert "after 100 steps" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    main([*arguments, "--resume"])
    assert "all steps are done already" in capsys.readouterr().out


def test_a_run_that_is_stopped_before_it_began_has_saved_nothing(tmp_path, monkeypatch, capsys):
    signal_at(monkeypatch, "stage", MAKING, signal.SIGINT)
    with pytest.raises(SystemExit) as stop:
        main(["train", *OPTIONS, "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert "Stopped by Ctrl-C. Nothing was saved." in capsys.readouterr().out
    assert not list(tmp_path.rglob("agent.zip"))


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/losse"])
def test_a_folder_that_cannot_be_written_is_found_before_training(out, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    for command in (["train", *OPTIONS], ["demo"]):
        with pytest.raises(SystemExit) as stop:
            main([*command, "--out", str(tmp_path / out)])
        assert stop.value.code == 2
        shown = capsys.readouterr()
        assert f"--out {tmp_path / out} cannot be written (" in shown.err
        assert "Traceback" not in shown.err
        assert "PyTorch" not in shown.out


def test_a_full_disk_is_found_before_training(tmp_path, monkeypatch, capsys):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit) as stop:
        main(["train", *OPTIONS, "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert "cannot be written ([Errno 28] No space left on device)" in capsys.readouterr().err


def test_disks_that_fill_up_during_training(tmp_path, monkeypatch, capsys):
    """All that can be written to: nothing is saved, which is said in a line, and nothing stays."""
    places = [tmp_path / name for name in ("out", "temporary", "home", "here")]
    for place in places[1:]:
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(places[1]))
    monkeypatch.setenv("HOME", str(places[2]))
    monkeypatch.chdir(places[3])

    def full(handle):
        raise OSError(28, "No space left on device")

    def fill(self, what):
        monkeypatch.setattr(os, "fsync", full)

    monkeypatch.setattr(TrainView, "stepped", fill)
    with pytest.raises(SystemExit) as stop:
        main(["train", *OPTIONS, "--steps", "100", "--out", str(places[0])])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "Nothing was saved" in shown.out
    assert "the run can be saved nowhere" in shown.err
    assert "Free some space" in shown.err
    assert "Traceback" not in shown.err
    left = [path.name for place in places for path in place.rglob("*") if path.is_file()]
    assert set(left) <= {LIVE, PROBE}  # the journal, which says that it failed


def test_what_cannot_be_saved_in_the_end_is_saved_elsewhere(tmp_path, monkeypatch, capsys):
    out, spare = tmp_path / "out", tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))

    def vanish(self, what):
        if what == 90:
            shutil.rmtree(out)
            out.write_text("in the way")

    monkeypatch.setattr(TrainView, "stepped", vanish)
    with pytest.warns(UserWarning, match="cannot be written.*is saved in"):
        main(["train", *OPTIONS, "--steps", "100", "--out", str(out)])
    shown = capsys.readouterr().out
    (folder,) = spare.glob("*/losse_seed0")
    (record,) = spare.glob("*/runs.jsonl")
    assert f"replay buffer after 100 steps: {folder}. " in shown
    assert f"Record and figure: {record}, " in shown
    monkeypatch.undo()
    main(["train", *OPTIONS, "--steps", "120", "--resume", "--out", str(folder.parent)])
    assert "replay buffer after 120 steps" in capsys.readouterr().out


def test_a_second_signal_stops_at_once_and_the_checkpoint_before_is_named(
    tmp_path, monkeypatch, capsys
):
    signal_at(monkeypatch, "stepped", 70, signal.SIGINT, signal.SIGINT)
    options = ["--checkpoint-every", "40", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stop:
        main(["train", *OPTIONS, "--steps", "100", *options])
    assert stop.value.code == 130
    shown = capsys.readouterr().out
    assert "Stopped by Ctrl-C. Agent, world model and replay buffer after 40 steps: " in shown
    assert latest_checkpoint(tmp_path / "losse_seed0").name.startswith("checkpoint-40-")


FIRST_WORD = """
import os, sys
from rich.console import Console

from losse.cli import main

class Out:
    encoding = "utf-8"
    def write(self, text):
        heavy = [name for name in ("torch", "jax", "sklearn", "numba") if name in sys.modules]
        sys.stderr.write(f"{text.strip()} {heavy}")
        sys.stderr.flush()
        os._exit(0)
    def flush(self):
        pass

sys.stdout = Out()
main(["train", "--env", "CartPole-v1"])
"""


def test_the_first_word_comes_before_anything_slow():
    ran = subprocess.run([sys.executable, "-c", FIRST_WORD], capture_output=True, text=True)
    assert ran.stderr == "loading ... []"


class Clock:
    """A clock that goes on as told."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_without_a_terminal_there_are_lines_of_stages_speed_and_time_left(monkeypatch):
    clock = Clock(monkeypatch)
    console = Console(file=io.StringIO(), force_terminal=False)
    with TrainView(console, Training(env="CartPole-v1", steps=10_000)) as view:
        view.stage(COMPILING)
        assert console.file.getvalue() == "compiling ...\n"
        for step in range(0, 3001):
            view.stepped(step)
            clock.now += 0.01
        view.evaluated(TrainingProgress(steps=3001, curve=((3001, 9.5),), errors=((3001, 0.25),)))
        view.evaluated(TrainingProgress(steps=3002, curve=((3002, 9.5),)))
    _, *lines, last = console.file.getvalue().splitlines()
    for line, second in zip(lines, (1, 11, 21), strict=True):
        pattern = r"step (\d+) of 10000, ([\d.]+) steps/s, 0:01:(\d+) left"
        step, speed, left = map(float, re.fullmatch(pattern, line).groups())
        assert step == pytest.approx(100 * second, abs=10)
        assert speed == pytest.approx(100, abs=2)
        assert left == pytest.approx((100 - second) - 60, abs=3)
    assert last.startswith("step 3001: return 9.5, model error 0.250, ")


def test_on_a_terminal_stage_speed_and_return_share_a_line(monkeypatch):
    clock = Clock(monkeypatch)
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=120)
    training = Training(env="CartPole-v1", steps=1000)
    with TrainView(console, training) as view:
        view.stage(COMPILING)
    assert re.search(r"dqn with losse.*compiling \.\.\.", console.file.getvalue())
    with TrainView(console, training) as view:
        for step in range(0, 501):
            view.stepped(step)
            clock.now += 0.01
        view.evaluated(TrainingProgress(steps=500, curve=((500, 9.5),)))
    assert re.search(r"return 9\.5, [\d.]+ steps/s, 0:00:0[4-6] left", console.file.getvalue())


def test_a_run_shorter_than_an_evaluation_has_a_result(tmp_path, capsys):
    options = ["--model", "model-free", "--eval-every", "500", "--out", str(tmp_path)]
    main(["train", *OPTIONS, *options, "--steps", "60"])
    (record,) = read_records(tmp_path)
    assert [step for step, _ in record.curve] == [60]
    shown = capsys.readouterr().out
    assert f"Return {record.curve[-1][1]:.1f} in the last evaluation" in shown
    with pytest.raises(SystemExit):
        main(["train", *OPTIONS, *options, "--steps", "40", "--resume"])
    assert "steps=40 are fewer than the 60" in capsys.readouterr().err


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


OWN_MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

gymnasium.register("Own-v0", entry_point="{name}:CartPoleEnv", max_episode_steps=20)
"""


def test_an_environment_of_the_present_folder_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    (tmp_path / "own_environments.py").write_text(OWN_MODULE.format(name="own_environments"))
    options = ["--model", "model-free", "--steps", "50"]
    main(["train", *OPTIONS, "--env", "own_environments:Own-v0", *options])
    (record,) = read_records("results/train/own_environments-Own-v0_dqn")
    assert record.curve[0][1] <= 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "neither installed nor in"),
        ("import no_such_package", "imports 'no_such_package', which is not installed"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    if text is not None:
        (tmp_path / "broken_module.py").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["train", "--env", "broken_module:Own-v0"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_the_folder_is_named_after_environment_and_agent():
    folder = Settings.read(["--env", "losse/Gridworld-v0"]).folder()
    assert folder.as_posix() == "results/train/losse-Gridworld-v0_dqn"
