"""`losse bench [name]`: run a benchmark of the source checkout.

A benchmark is a file `benchmarks/<name>.py` with a dataclass `Settings`, which is also its command
line, and a function `run(settings)`. It may name packages that it needs in processes of its own as
`REQUIRED`. The benchmarks are not part of the installed package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import tyro

import losse
from losse.cli import fail

DEFAULT = "core"


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark named by the first argument with the options that follow."""
    name, options = DEFAULT, list(arguments)
    if options and not options[0].startswith("-"):
        name, *options = options
    folder = find_benchmarks()
    if folder is None:
        fail("bench needs a source checkout: no folder 'benchmarks' beside the package or here")
    if name not in (names := benchmark_names(folder)):
        fail(f"no benchmark {name!r} in {folder}; choose from: {', '.join(names) or 'none'}")
    # Benchmarks share modules, so they are imported as the package that their folder is.
    sys.path.insert(0, str(folder.parent))
    module = import_module(f"benchmarks.{name}")
    for package in getattr(module, "REQUIRED", ()):
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    module.run(tyro.cli(module.Settings, prog=f"losse bench {name}", args=options))


def find_benchmarks() -> Path | None:
    """Return the folder `benchmarks` of the checkout that losse runs from, or of this directory."""
    roots = [Path(losse.__file__).resolve().parents[2], Path.cwd()]
    return next((r / "benchmarks" for r in roots if (r / "benchmarks").is_dir()), None)


def benchmark_names(folder: Path) -> list[str]:
    """Return the names of the files in `folder` that are benchmarks, not shared code."""
    return sorted(p.stem for p in folder.glob("*.py") if "class Settings" in p.read_text())
