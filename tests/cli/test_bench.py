import sys

import pytest

import losse
from losse.cli import bench, main

BENCHMARK = """
from dataclasses import dataclass
from pathlib import Path
from benchmarks.shared import text

@dataclass(frozen=True)
class Settings:
    out: Path
    size: int = 1

def run(settings):
    settings.out.write_text(text(settings.size))
"""


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """An installed package and a current directory without benchmarks."""
    monkeypatch.setattr(losse, "__file__", str(tmp_path / "lib" / "losse" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(nowhere, monkeypatch):
    folder = nowhere / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "shared.py").write_text("def text(size): return 'x' * size\n")
    (folder / "core.py").write_text(BENCHMARK)
    (folder / "other.py").write_text(BENCHMARK.replace("size: int = 1", "size: int = 5"))
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in [m for m in sys.modules if m.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    yield nowhere
    for name in [m for m in sys.modules if m.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [([], "x"), (["--size", "3"], "xxx"), (["core"], "x"), (["other"], "x" * 5)],
)
def test_a_benchmark_runs_with_its_options(checkout, arguments, written):
    main(["bench", *arguments, "--out", str(checkout / "out.txt")])
    assert (checkout / "out.txt").read_text() == written


def test_without_a_checkout_one_line_says_so(nowhere, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench"])
    assert stop.value.code == 2
    assert "needs a source checkout" in capsys.readouterr().err


def test_an_unknown_benchmark_is_refused_with_the_known_ones(checkout, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "shared"])
    assert stop.value.code == 2
    assert "choose from: core, other" in capsys.readouterr().err


def test_the_benchmarks_of_this_checkout_are_found():
    folder = bench.find_benchmarks()
    assert folder is not None
    assert "core" in bench.benchmark_names(folder)
