"""`losse report RUN... -o report.html`: runs in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from losse.cli import fail
from losse.storage.atomic import replacing
from losse.watch.report import report
from losse.watch.watched import Watched


@dataclass(frozen=True)
class Settings:
    """Write figures, tables, settings and versions of runs into one self-contained HTML file."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (Path("results"),)
    """Folders of runs, or above them."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """File to write."""


def main(arguments: Sequence[str]) -> None:
    """Write the report."""
    settings = tyro.cli(Settings, prog="losse report", args=list(arguments))
    watched = Watched(settings.runs)
    watched.refresh()
    try:
        text = report(watched)
        settings.out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(settings.out) as write:
            write(text.encode())
    except (ValueError, OSError) as error:
        fail(str(error))
    print(settings.out)
