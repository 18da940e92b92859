"""`losse reproduce <experiment>`: rebuild a table or figure of the paper from scratch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import tyro
from rich.console import Console

from losse.cli import INTERRUPTED, fail, listing
from losse.cli.progress import RunDisplay
from losse.paper import EXPERIMENTS, load
from losse.runs.experiment import folder_of
from losse.runs.journal import SweepJournal
from losse.runs.report import report
from losse.runs.runner import reproduce


def main(arguments: Sequence[str]) -> None:
    """Run the experiment named by the first argument with the options that follow."""
    name, options = experiment_name("reproduce", arguments)
    experiment = load(name)
    settings = tyro.cli(
        experiment.Settings,
        prog=f"losse reproduce {name}",
        args=options,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    folder = folder_of(settings, name)
    settings = replace(settings, out=folder)
    console = Console()
    with RunDisplay(console, name) as display:
        try:
            with SweepJournal(folder, name, display) as journal:
                failed = reproduce(experiment, settings, journal)
        except (ValueError, ModuleNotFoundError, ConnectionError) as error:
            fail(str(error))
        except KeyboardInterrupt:
            display.close()
            console.print("Interrupted. The same command goes on from here.")
            raise SystemExit(INTERRUPTED) from None
    try:
        files = report(experiment, folder)
        console.print(f"Table and figures: {', '.join(map(str, files))}", soft_wrap=True)
    except FileNotFoundError as error:
        print(f"losse: {error}", file=sys.stderr)
    if failed:
        names = ", ".join(run.name for run in failed)
        print(f"losse: {len(failed)} runs failed: {names}", file=sys.stderr)
        raise SystemExit(1)


def experiment_name(command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split the arguments into an experiment's name and the options; help if there is none."""
    name, *options = list(arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(f"usage: losse {command} <experiment> [--help] [options]\n\nexperiments:")
        print(listing({key: entry.summary for key, entry in EXPERIMENTS.items()}))
        raise SystemExit(0)
    if name not in EXPERIMENTS:
        fail(f"no experiment {name!r}; choose from: {', '.join(EXPERIMENTS)}")
    return name, options
