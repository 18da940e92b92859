import sys
from pathlib import Path

import pytest

import benchmarks
import losse
from losse.cli import bench, main

ROOT = Path(__file__).parents[2]
SECTIONS = """
from typing import NamedTuple

class Section(NamedTuple):
    module: str
    summary: str

SECTIONS = {"core": Section("core", "the first"), "other": Section("other", "the second")}
"""
BENCHMARK = """
from dataclasses import dataclass
from pathlib import Path
from benchmarks.shared import text

@dataclass(frozen=True)
class Settings:
    out: Path
    size: int = 1

def run(settings):
    if settings.size < 0:
        raise ValueError("size must not be negative")
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
    (folder / "__init__.py").write_text(SECTIONS)
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


def test_help_lists_all_sections(checkout, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "  core   the first\n  other  the second\n" in out


def test_a_mistake_is_told_in_one_line(checkout, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "other", "--size", "-1", "--out", str(checkout / "out.txt")])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "losse: size must not be negative\n"


def test_the_sections_of_this_checkout_can_be_imported():
    assert bench.find_benchmarks() == ROOT / "benchmarks"
    for section in benchmarks.SECTIONS.values():
        module = pytest.importorskip(f"benchmarks.{section.module}")
        assert {"Settings", "run"} <= set(dir(module))
