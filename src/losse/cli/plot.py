"""`losse plot <experiment>`: draw table and figures again, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from losse.cli import fail
from losse.cli.reproduce import experiment_name
from losse.paper import load
from losse.runs.report import report


@dataclass(frozen=True)
class Settings:
    """Write the table (Markdown and CSV) and figures (PNG and SVG) of an experiment's records."""

    out: Path | None = None
    """Folder of the records, and of table and figures; by default results/<experiment>."""


def main(arguments: Sequence[str]) -> None:
    """Draw the experiment named by the first argument."""
    name, options = experiment_name("plot", arguments)
    settings = tyro.cli(Settings, prog=f"losse plot {name}", args=options)
    try:
        files = report(load(name), settings.out or Path("results", name))
    except (FileNotFoundError, ValueError) as error:
        fail(str(error))
    print("\n".join(map(str, files)))
