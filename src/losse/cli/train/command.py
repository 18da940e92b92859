"""The command `losse train`: its options, and what it writes."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import gymnasium
import tyro
from rich.console import Console

from losse.cli import fail, require_writable
from losse.cli.train.stopping import StopRequest
from losse.cli.train.view import TrainView
from losse.dyna.options import Training
from losse.dyna.presets import PRESETS, describe, preset
from losse.dyna.progress import LOADING, TrainingProgress
from losse.runs.journal import Journal
from losse.runs.record import Record, file_name
from losse.runs.store import read_records, write_record
from losse.storage.jsonfile import plain


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Train an agent with a world model, evaluate it along the way, and keep all of it."""

    training: Training
    preset: Literal["auto", "mbpo", "none"] = "auto"
    """auto: tuned defaults for the environments that have them; mbpo: the settings of MBPO on
    MuJoCo, which take hours to days. Options that you give win."""
    learning_rate: float | None = None
    """Learning rate of the agent; by default that of the preset, or of its library."""
    learning_starts: int | None = None
    """Environment steps with random actions; by default those of the preset or library."""
    target_entropy: float | None = None
    """Entropy that SAC and its kind aim at; by default that of the preset or library."""
    batch_size: int | None = None
    """Rows of a minibatch; by default those of the preset or library."""
    hidden: tuple[int, ...] | None = None
    """Units of the agent's hidden layers; by default those of the preset or library."""
    model_options: tuple[str, ...] = ()
    """Further options of the world model, as name=value, such as regressor=paper."""
    env_options: tuple[str, ...] = ()
    """Options that the environment is made with, as name=value."""
    checkpoint_every: int = 5000
    """Environment steps between checkpoints."""
    checkpoint_seconds: float = 120.0
    """Seconds between checkpoints, if these are over earlier. The first comes after ten."""
    out: Path | None = None
    """Folder for record, figure, agent and model; by default results/train/<env>_<agent>."""
    resume: bool = False
    """Go on from the last checkpoint in this folder, if there is one."""

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Settings:
        """Settings of a command line.

        >>> small = Settings.read(["--env", "CartPole-v1", "--hidden", "8", "--preset", "none"])
        >>> small.training.agent_options
        {'policy_kwargs': {'net_arch': [8]}}
        """
        config = (tyro.conf.OmitArgPrefixes,)
        parse = partial(tyro.cli, cls, prog="losse train", args=list(arguments), config=config)
        settings = parse()
        base = Training(env=settings.training.env)
        tuned = settings.base
        if tuned is not None:
            # As defaults, its values give way to whatever the command line says.
            bare = replace(tuned, agent_options={}, model_options={}, env_options={})
            asked = parse(default=cls(training=bare))
            if asked.training.agent == tuned.agent:  # another one has other options
                kind = settings.kind
                settings, base = asked, preset(tuned.env, asked.training.model, kind)
        options = dict(base.agent_options)
        for name in ("learning_rate", "learning_starts", "target_entropy", "batch_size"):
            if getattr(settings, name) is not None:
                options[name] = getattr(settings, name)
        if settings.hidden is not None:
            options["policy_kwargs"] = {"net_arch": list(settings.hidden)}
        further = {
            name: dict(getattr(base, name)) | _options(f"--{name.replace('_', '-')}", given)
            for name, given in (
                ("model_options", settings.model_options),
                ("env_options", settings.env_options),
            )
        }
        whole = replace(settings.training, agent_options=options, **further)
        return replace(settings, training=whole)

    @property
    def kind(self) -> str:
        """The kind of preset that is asked for."""
        return "mbpo" if self.preset == "mbpo" else "tuned"

    @property
    def base(self) -> Training | None:
        """The preset that is asked for; None for plain defaults."""
        if self.preset == "mbpo":
            return preset(self.training.env, kind="mbpo")
        return PRESETS.get(self.training.env) if self.preset == "auto" else None

    def said(self) -> str:
        """Which defaults are in use, for the user."""
        env, agent, base = self.training.env, self.training.agent, self.base
        if base is None:
            return ""
        if agent != base.agent:
            return f"The preset for {env} is for {base.agent}: {agent} has plain defaults."
        values = ", ".join(f"{name} {value}" for name, value in describe(self.training).items())
        return f"Preset for {env} (--preset none: plain defaults): {values}."

    def folder(self) -> Path:
        """Folder of the record and the figure."""
        default = Path("results", "train", file_name(self.training.env, self.training.agent))
        return self.out or default


def train_with(arguments: Sequence[str], console: Console) -> None:
    """Train with the options of the command line."""
    try:
        settings = Settings.read(arguments)
    except ValueError as error:
        fail(str(error))
    with StopRequest() as request:
        try:
            run(settings, console, request)
        except (ValueError, TypeError, OSError, FloatingPointError, gymnasium.error.Error) as error:
            fail(str(error))
        except KeyboardInterrupt:
            raise SystemExit(request.exit_code) from None


def _options(flag: str, given: Sequence[str]) -> dict[str, Any]:
    """Options that are written as name=value; values are JSON, or else words.

    >>> _options("--model-options", ["regressor=paper", "seed=3"])
    {'regressor': 'paper', 'seed': 3}
    """
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            raise ValueError(f"{flag} {text!r} must be a name and a value: write name=value.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options


def run(settings: Settings, console: Console, request: StopRequest) -> None:
    """Train, write the record and draw all records of the folder."""
    training, folder = settings.training, settings.folder()
    if settings.said():
        _say(console, settings.said())
    _import_module_of(training.env)
    saved = folder / file_name(training.model, f"seed{training.seed}")
    if (saved / "latest").exists() and not settings.resume:
        raise ValueError(
            f"{saved} holds a run already: add --resume to go on, or choose another --out."
        )
    require_writable(folder)
    view = TrainView(console, training)
    try:
        with view, warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            view.stage(LOADING)
            from losse.dyna.training import train
            from losse.runs.following import TrainingFollower

            with Journal(saved, about(training)) as journal:
                follower = TrainingFollower(journal, view)
                result = train(
                    training,
                    folder=saved,
                    checkpoint_every=settings.checkpoint_every,
                    checkpoint_seconds=settings.checkpoint_seconds,
                    resume=settings.resume,
                    stop=request.made,
                    observer=follower,
                    callbacks=[follower],
                )
    except (KeyboardInterrupt, FloatingPointError, OSError) as error:
        why = f" by {request.name}" if isinstance(error, KeyboardInterrupt) else ""
        _say(console, f"Stopped{why}. {_saved(view, training)}")
        raise
    _report(console, training, result, folder)
    _say(console, _saved(view, training))
    if request.made() and result.steps < training.steps:
        _say(console, f"Stopped by {request.name} at step {result.steps} of {training.steps}.")
        raise SystemExit(request.exit_code)


def _report(console: Console, training: Training, result: TrainingProgress, folder: Path) -> None:
    """Write record and figure, elsewhere if need be, and print the result."""
    if not result.curve:
        _say(console, "There was no evaluation yet, so there is no record.")
        return
    first = "never" if result.first_end is None else f"at step {result.first_end}"
    _say(
        console,
        f"Return {result.curve[-1][1]:.1f} in the last evaluation, {result.score:.1f} over all; "
        f"first episode that ended by itself {first}.\n{result.seconds:.0f} s of training, "
        f"{100 * result.model_share:.0f} % of it the world model's.",
    )
    record = record_of(training, result)
    try:
        files = _write(record, folder)
    except OSError as error:
        files = _write(record, Path(tempfile.mkdtemp(prefix="losse-")))
        _say(console, f"{folder} cannot be written ({error}).")
    _say(console, f"Record and figure: {', '.join(map(str, files))}")


def _write(record: Record, folder: Path) -> list[Path]:
    """Write a record and draw all records of the folder; return the files."""
    from losse.cli.train.figure import draw

    written = write_record(record, folder)
    return [written, draw(read_records(folder), folder)[0]]


def _saved(view: TrainView, training: Training) -> str:
    """What is on the disk, and how to go on from there."""
    if view.checkpoint is None:
        return "Nothing was saved."
    folder, steps = view.checkpoint
    more = " and more --steps" if steps >= training.steps else ""
    return (
        f"Agent, world model and replay buffer after {steps} steps: {folder}. The same command "
        f"with --resume{more} --out {folder.parent} goes on from there."
    )


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def about(training: Training) -> dict[str, Any]:
    """What the journal of a training begins with."""
    return {
        "experiment": "train",
        "method": training.model,
        "setting": training.env,
        "seed": training.seed,
        "of": training.steps,
        "settings": plain(training),
    }


def record_of(training: Training, result: TrainingProgress) -> Record:
    """The record of a training."""
    return Record(
        experiment="train",
        method=training.model,
        setting=training.env,
        seed=training.seed,
        score=result.score,
        curve=result.curve,
        settings=plain(training),
        seconds=round(result.seconds, 2),
        details={
            "first_end": result.first_end,
            "model_error": result.errors,
            "cpu_seconds": result.times,
            "update_seconds": round(result.update_seconds, 3),
            "imagination_seconds": round(result.imagination_seconds, 3),
            "gradient_steps": result.gradient_steps,
        },
    )


def _import_module_of(env: str) -> None:
    """Import the module that an id like my_module:MyEnv-v0 names, also from the present folder."""
    module, colon, _ = env.rpartition(":")
    if not colon:
        return
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: a file here must not stand for an installed package
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            raise ValueError(
                f"env={env!r} names the module {module!r}, which is neither installed nor in "
                f"{here}: run losse in the folder that holds it."
            ) from error
        raise ValueError(
            f"env={env!r}: its module {module!r} imports {error.name!r}, which is not installed."
        ) from error
