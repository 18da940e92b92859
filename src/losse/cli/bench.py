"""`losse bench [section]`: run a benchmark of the source checkout.

The package `benchmarks` beside the source names its sections in `SECTIONS`, each with its module
and a summary. A module has a dataclass `Settings`, which is also its command line, a function
`run(settings)`, and may name the packages that it needs as `REQUIRED`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import tyro

import losse
from losse._kernels.block import INSTRUCTIONS
from losse.cli import fail, listing
from losse.runs.provenance import environment

DEFAULT = "core"


def main(arguments: Sequence[str]) -> None:
    """Run the section named by the first argument with the options that follow."""
    name, options = DEFAULT, list(arguments)
    if options and not options[0].startswith("-"):
        name, *options = options
    folder = find_benchmarks()
    if folder is None:
        fail("bench needs a source checkout: no folder 'benchmarks' beside the package or here")
    # Sections share modules, so they are imported as the package that their folder is.
    sys.path.insert(0, str(folder.parent))
    sections = import_module("benchmarks").SECTIONS
    if arguments and arguments[0] in ("-h", "--help"):
        print("usage: losse bench [section] [--help] [options]\n\nsections:")
        print(listing({key: section.summary for key, section in sections.items()}))
        print(f"\nWithout a section: {DEFAULT}.")
        raise SystemExit(0)
    if name not in sections:
        fail(f"no section {name!r} in {folder}; choose from: {', '.join(sections)}")
    module = import_module(f"benchmarks.{sections[name].module}")
    for package in getattr(module, "REQUIRED", ()):
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    settings = tyro.cli(module.Settings, prog=f"losse bench {name}", args=options)
    print(f"Kernels are compiled for {INSTRUCTIONS}: {environment().cpu}", flush=True)
    try:
        module.run(settings)
    except (ValueError, FileNotFoundError) as error:
        fail(str(error))


def find_benchmarks() -> Path | None:
    """Return the folder `benchmarks` of the checkout that losse runs from, or of this directory."""
    roots = [Path(losse.__file__).resolve().parents[2], Path.cwd()]
    return next((r / "benchmarks" for r in roots if (r / "benchmarks").is_dir()), None)
