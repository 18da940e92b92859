import subprocess
import sys

import pytest

import losse.cli
from losse.cli import BROKEN_PIPE, COMMANDS, main


def test_help_names_every_command(capsys):
    for arguments in ([], ["--help"], ["-h"]):
        main(arguments)
        out = capsys.readouterr().out
        assert all(name in out for name in COMMANDS)


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out.startswith("losse ")


def test_the_package_can_be_run():
    command = [sys.executable, "-m", "losse", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("losse ")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from losse.cli import main; main(['--help']);"
        "sys.exit(any(m in sys.modules for m in ('numba', 'sklearn', 'scipy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("command", ["--help", "train --help", "info --help"])
def test_output_that_nobody_reads_is_no_error(command):
    ran = subprocess.Popen(
        [sys.executable, "-u", "-m", "losse", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    ran.stdout.close()
    assert ran.communicate()[1] == b""
    assert ran.returncode == BROKEN_PIPE


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2
    assert "unknown command 'fly'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "extra"),
    [("demo", "rl"), ("reproduce", "paper"), ("plot", "paper"), ("bench", "dev")],
)
def test_a_missing_extra_is_named_in_one_line(command, extra, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tyro", None)  # as if not installed
    monkeypatch.delitem(sys.modules, f"losse.cli.{command}", raising=False)
    monkeypatch.delattr(losse.cli, command, raising=False)
    with pytest.raises(SystemExit) as stop:
        main([command])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "'tyro'" in err
    assert f"losse[{extra}]" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_ends_with_examples(name, capsys):
    pytest.importorskip("rliable")
    pytest.importorskip("uvicorn")
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert not stop.value.code
    shown = capsys.readouterr().out
    _, _, examples = shown.rpartition("examples:\n")
    lines = [line.strip() for line in examples.splitlines()]
    assert lines == list(COMMANDS[name].examples)
    assert all(line.startswith(f"losse {name}") for line in lines)


@pytest.mark.parametrize(
    "line", [line for command in COMMANDS.values() for line in command.examples]
)
def test_examples_name_options_that_exist(line, capsys):
    """Each example with --help behind it is understood."""
    pytest.importorskip("rliable")
    pytest.importorskip("uvicorn")
    words = line.split()[1:]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert not stop.value.code, capsys.readouterr().err
    shown = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert option in shown


def test_an_error_that_nobody_expected_is_one_line_unless_debug(monkeypatch, capsys):
    pytest.importorskip("tyro")
    import losse.cli.info

    def broken():
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr(losse.cli.info, "machine", broken)
    with pytest.raises(SystemExit) as stop:
        main(["info"])
    assert stop.value.code == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "RuntimeError: the machine is gone (with --debug" in shown
    with pytest.raises(RuntimeError, match="the machine is gone"):
        main(["info", "--debug"])


def test_debug_shows_where_an_error_that_is_known_comes_from(capsys):
    pytest.importorskip("tyro")
    with pytest.raises(SystemExit):
        main(["info", "--inputs", "0"])
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--debug", "info", "--inputs", "0"])
    shown = capsys.readouterr().err
    assert "inputs=0 must be at least 1" in shown
    assert "Traceback" in shown


def test_info_names_the_machine_and_tries_a_model(monkeypatch, capsys):
    pytest.importorskip("tyro")
    from losse.cli import info

    monkeypatch.setattr(info, "TRIAL_SECONDS", 0.01)
    options = [
        "--model",
        "paper",
        "--grids",
        "5",
        "--inputs",
        "3",
        "--outputs",
        "2",
        "--rows",
        "50",
    ]
    main(["info", *options])
    shown = capsys.readouterr().out
    for word in ("losse", "numpy", "processor", "instructions", "threads", "free memory"):
        assert word in shown
    assert "LosseEncoder with 605 features" in shown
    assert "rows a second" in shown
