"""The command line `losse`: finds the command, imports only that one, and runs it."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple, NoReturn

from losse.extras import missing

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""
BROKEN_PIPE = 141
"""Exit code of a command whose output nobody reads any more."""

TRIAL_BYTES = 1 << 20
"""Bytes that a folder for results must have room for, at least."""


class Command(NamedTuple):
    """One command: the module `losse.cli.<name>` with a function `main(arguments)`."""

    summary: str
    extra: str
    examples: tuple[str, ...]


COMMANDS = {
    "demo": Command(
        "watch an agent plan in a world model that it learns, and who forgets",
        extra="rl",
        examples=("losse demo", "losse demo dyna --seeds 5 --out /tmp/demo"),
    ),
    "train": Command(
        "train an agent with a world model on any environment",
        extra="rl",
        examples=(
            "losse train --env CartPole-v1 --steps 5000",
            "losse train --env Pendulum-v1 --agent sac --model model-free",
            "losse train --env my_module:MyEnv-v0",
        ),
    ),
    "plan": Command(
        "let an agent plan in a world model that it learns",
        extra="rl",
        examples=(
            "losse plan --env Pendulum-v1 --gif",
            "losse plan --env CartPole-v1 --steps 2000",
        ),
    ),
    "watch": Command(
        "show runs on a local page that follows them",
        extra="watch",
        examples=("losse watch", "losse watch results/train results/plan --open"),
    ),
    "report": Command(
        "write runs into one HTML file, to send to others",
        extra="watch",
        examples=("losse report results/train -o report.html",),
    ),
    "reproduce": Command(
        "rebuild a table or figure of the paper",
        extra="paper",
        examples=(
            "losse reproduce forgetting --preset quick --out /tmp/forgetting",
            "losse reproduce discrete-control --workers 4",
        ),
    ),
    "plot": Command(
        "draw a table and figure again from its records",
        extra="paper",
        examples=("losse plot forgetting", "losse plot random-walk --out /tmp/random-walk"),
    ),
    "records": Command(
        "list, sort, check, drop or export the records of runs",
        extra="cli",
        examples=("losse records list results --methods", "losse records export --out runs.csv"),
    ),
    "info": Command(
        "show versions and machine, and what a model needs and does here",
        extra="cli",
        examples=("losse info", "losse info --model paper --grids 30 --inputs 6 --outputs 5"),
    ),
    "bench": Command(
        "measure speed and accuracy (in a source checkout)",
        extra="dev",
        examples=("losse bench core", "losse bench latency --help"),
    ),
}
HELP = {"-h", "--help"}
DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `losse` with the given arguments (those of the process by default).

    >>> main(["--help"])
    usage: losse [--version] [--debug] <command> [--help] [options]
    ...
    """
    try:
        _dispatch(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        _require_broken_output()
        raise SystemExit(BROKEN_PIPE) from None


def _dispatch(given: Sequence[str]) -> None:
    debug = DEBUG in given
    name, *rest = [one for one in given if one != DEBUG] or ["--help"]
    if name in HELP:
        print(_usage())
    elif name in ("-V", "--version"):
        print(f"losse {metadata.version('losse')}")
    elif name in COMMANDS:
        _run(name, rest, debug)
    else:
        fail(f"unknown command {name!r}; choose from: {', '.join(COMMANDS)}")


def _require_broken_output() -> None:
    """Raise the `BrokenPipeError` at hand unless nobody reads the output any more, as in `| head`.

    What is still to be written then goes nowhere, so that Python does not complain when it ends.
    """
    try:
        print(flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        raise


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


def _run(name: str, arguments: list[str], debug: bool) -> None:
    """Run a command; whatever goes wrong is one line, or with --debug where it happened, too."""
    try:
        import_module(f"{__name__}.{name}").main(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if debug or package in ("", "losse", "benchmarks"):
            raise
        fail(str(missing(name, package, COMMANDS[name].extra)))
    except SystemExit as end:
        if HELP & set(arguments) and not end.code:
            print("\nexamples:\n" + "\n".join(f"  {line}" for line in COMMANDS[name].examples))
        elif debug and end.__context__ is not None:
            traceback.print_exception(end.__context__)
        raise
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except Exception as error:
        if debug:
            raise
        fail(f"{type(error).__name__}: {error} (with --debug: where it happened)")


def _usage() -> str:
    commands = listing({name: command.summary for name, command in COMMANDS.items()})
    return (
        "usage: losse [--version] [--debug] <command> [--help] [options]\n\n"
        f"commands:\n{commands}\n\n"
        "losse <command> --help has examples; --debug shows where an error comes from."
    )
