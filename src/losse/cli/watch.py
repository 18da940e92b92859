"""`losse watch [RUN...]`: a local page that follows runs while they go on, or shows them after."""

from __future__ import annotations

import ipaddress
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from losse.cli import fail
from losse.watch.server import serve
from losse.watch.watched import Watched


@dataclass(frozen=True)
class Settings:
    """Show runs on a local web page, which follows them as they go on. Nothing is written."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (Path("results"),)
    """Folders of runs, or above them."""
    host: str = "127.0.0.1"
    """Address to listen at. By default only this machine can connect."""
    port: int | None = None
    """Port to listen at; by default 8321, or any other if that is taken."""
    allow_name: tuple[str, ...] = ()
    """Names of this machine that may stand in the page's address, beside localhost."""
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Open the page in a browser."""


def main(arguments: Sequence[str]) -> None:
    """Serve until Ctrl-C."""
    settings = tyro.cli(Settings, prog="losse watch", args=list(arguments))
    console = Console()
    absent = [str(path) for path in settings.runs if not path.is_dir()]
    if absent:
        fail(f"{', '.join(absent)} is no folder: name folders of runs, such as results/train.")

    def ready(address: str) -> None:
        names = ", ".join(map(str, settings.runs))
        console.print(f"Watching {names} at {address} (Ctrl-C ends it)", soft_wrap=True)
        if not _only_here(settings.host):
            console.print("Whoever can reach this machine can read these runs.", style="yellow")
        if settings.open:
            webbrowser.open(address)

    try:
        serve(Watched(settings.runs), settings.host, settings.port, settings.allow_name, ready)
    except (ValueError, OSError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        pass


def _only_here(host: str) -> bool:
    """Whether only programs on this machine can connect.

    >>> _only_here("127.0.0.1"), _only_here("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
