import subprocess
import sys

import pytest

import losse.cli
from losse.cli import COMMANDS, main


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
