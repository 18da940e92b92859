"""The command line `losse`: finds the command, imports only that one, and runs it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple, NoReturn

from losse.extras import missing

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""

TRIAL_BYTES = 1 << 20
"""Bytes that a folder for results must have room for, at least."""


class Command(NamedTuple):
    """One command: the module `losse.cli.<name>` with a function `main(arguments)`."""

    summary: str
    extra: str


COMMANDS = {
    "demo": Command("watch an agent learn with a world model, and who forgets", extra="rl"),
    "train": Command("train an agent with a world model on any environment", extra="rl"),
    "plan": Command("let an agent plan in a world model that it learns", extra="rl"),
    "watch": Command("show runs on a local page that follows them", extra="watch"),
    "report": Command("write runs into one HTML file, to send to others", extra="watch"),
    "reproduce": Command("rebuild a table or figure of the paper", extra="paper"),
    "plot": Command("draw a table and figure again from its records", extra="paper"),
    "records": Command("list, sort, check, drop or export the records of runs", extra="cli"),
    "bench": Command("measure speed and accuracy (in a source checkout)", extra="dev"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `losse` with the given arguments (those of the process by default).

    >>> main(["--help"])
    usage: losse [--version] <command> [--help] [options]
    ...
    """
    name, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    if name in ("-h", "--help"):
        print(_usage())
    elif name in ("-V", "--version"):
        print(f"losse {metadata.version('losse')}")
    elif name in COMMANDS:
        _run(name, rest)
    else:
        fail(f"unknown command {name!r}; choose from: {', '.join(COMMANDS)}")


def fail(message: str) -> NoReturn:
    """Print one line on standard error and leave with exit code 2."""
    print(f"losse: {message}", file=sys.stderr)
    raise SystemExit(2)


def listing(summaries: Mapping[str, str]) -> str:
    """Names with what they mean, one per line and in columns.

    >>> print(listing({"a": "first", "long": "second"}))
      a     first
      long  second
    """
    width = max(map(len, summaries), default=0)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in summaries.items())


def require_writable(out: Path) -> None:
    """Raise `ValueError` unless files can be written in a folder, which is made if need be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as file:
            file.write(bytes(TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written ({error}): choose another.") from error


def _run(name: str, arguments: list[str]) -> None:
    try:
        import_module(f"{__name__}.{name}").main(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "losse", "benchmarks"):
            raise
        fail(str(missing(name, package, COMMANDS[name].extra)))


def _usage() -> str:
    commands = listing({name: command.summary for name, command in COMMANDS.items()})
    return f"usage: losse [--version] <command> [--help] [options]\n\ncommands:\n{commands}"
