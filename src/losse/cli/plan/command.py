"""The command `losse plan`: its options, what it shows, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import gymnasium
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from losse.cli import fail, require_writable
from losse.cli.train.stopping import StopRequest
from losse.planning.options import AGENT, PlanningOptions
from losse.runs.journal import Journal
from losse.runs.record import Record, file_name
from losse.runs.store import read_records, write_record
from losse.storage.jsonfile import plain

if TYPE_CHECKING:
    from losse.planning.run import RunProgress


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Let an agent plan in a world model that it learns as it goes, and keep all of it."""

    options: PlanningOptions
    gif: bool = False
    """At the end, draw an episode: what happened, and beside it what was planned."""
    checkpoint_every: int = 1000
    """Environment steps between checkpoints."""
    out: Path | None = None
    """Folder for record, figure and agent; by default results/plan/<env>."""
    resume: bool = False
    """Go on from the last checkpoint in this folder, if there is one."""

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Settings:
        """Settings of a command line.

        >>> Settings.read(["--env", "Pendulum-v1", "--planner", "mppi"]).options.planner
        'mppi'
        """
        plain_names = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
        return tyro.cli(cls, prog="losse plan", args=list(arguments), config=plain_names)

    def folder(self) -> Path:
        """Folder of the record and the figure."""
        return self.out or Path("results", "plan", file_name(self.options.env))


def main(arguments: Sequence[str]) -> None:
    """Plan with the options of the command line."""
    settings = Settings.read(arguments)
    with StopRequest() as request:
        try:
            run(settings, Console(), request)
        except (ValueError, TypeError, OSError, FloatingPointError, gymnasium.error.Error) as error:
            fail(str(error))
        except KeyboardInterrupt:
            raise SystemExit(request.exit_code) from None


def run(settings: Settings, console: Console, request: StopRequest) -> Record:
    """Let the agent learn and plan, write the record, and draw all records of the folder."""
    options, folder = settings.options, settings.folder()
    saved = folder / file_name(method_of(options), f"seed{options.seed}")
    if (saved / AGENT).exists() and not settings.resume:
        raise ValueError(
            f"{saved} holds a run already: add --resume to go on, or choose another --out."
        )
    require_writable(folder)
    console.print("loading ...", style="dim", highlight=False)
    from losse.cli.train.figure import draw  # with the libraries of agents: takes seconds
    from losse.planning.run import run as run_agent
    from losse.runs.following import PlanningFollower

    with PlanView(console, options) as view, Journal(saved, about(options)) as journal:
        follower = PlanningFollower(journal)

        def report(progress: RunProgress) -> None:
            view.show(progress)
            follower.report(progress)

        agent, result = run_agent(
            options,
            saved,
            resume=settings.resume,
            checkpoint_every=settings.checkpoint_every,
            stop=request.made,
            report=report,
            callbacks=[follower],
        )
    record = record_of(options, result)
    written = write_record(record, folder)
    _summarise(console, result)
    _say(console, f"Record: {written}")
    drawn = [one for one in read_records(folder) if one.curve]
    if drawn:
        _say(console, f"Figure: {draw(drawn, folder, return_of='one episode')[0]}")
    _say(console, f"Agent and world model: {saved / AGENT}")
    if request.made():
        _say(console, f"Stopped by {request.name}. The same command with --resume goes on.")
        raise SystemExit(request.exit_code)
    if settings.gif:
        from losse.cli.plan.animation import animate

        _say(console, "Drawing one more episode ...")
        film = animate(agent, options, folder / f"{saved.name}.gif")
        _say(console, f"Episode with its plans: {film}")
    return record


def method_of(options: PlanningOptions) -> str:
    """Name of the method in records: the model, and the planner if it was chosen.

    >>> method_of(PlanningOptions(env="Pendulum-v1", planner="cem"))
    'losse-cem'
    """
    return options.model if options.planner == "auto" else f"{options.model}-{options.planner}"


def about(options: PlanningOptions) -> dict[str, Any]:
    """What the journal of a run begins with."""
    return {
        "experiment": "plan",
        "method": method_of(options),
        "setting": options.env,
        "seed": options.seed,
        "of": options.steps,
        "settings": plain(options),
    }


def record_of(options: PlanningOptions, result: RunProgress) -> Record:
    """The record of a run."""
    return Record(
        experiment="plan",
        method=method_of(options),
        setting=options.env,
        seed=options.seed,
        score=result.score,
        curve=result.curve,
        settings=plain(options),
        seconds=round(result.seconds, 2),
        details={
            "model_error": result.errors,
            "decisions": result.decisions,
            "decision_ms": round(result.decision_ms, 3),
            "update_seconds": round(result.update_seconds, 3),
        },
    )


class PlanView:
    """Shows steps, time left, the last return, the model's error and the time of a decision."""

    def __init__(self, console: Console, options: PlanningOptions) -> None:
        self._console = console
        self._episodes = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[latest]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task(options.env, total=options.steps, latest="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, progress: RunProgress) -> None:
        """Tell how far the run is; at the end of an episode, in a line of its own."""
        latest = f"{progress.decision_ms:.0f} ms a decision" if progress.decisions else "random"
        if progress.errors:
            latest = f"model error {progress.errors[-1][1]:.3f}, {latest}"
        self._progress.update(self._bar, completed=progress.steps, latest=latest)
        if len(progress.curve) > self._episodes:
            self._episodes = len(progress.curve)
            step, value = progress.curve[-1]
            line = f"step {step}: episode {self._episodes} returned {value:.1f}, {latest}"
            self._progress.console.print(line, highlight=False, soft_wrap=True)


def _summarise(console: Console, result: RunProgress) -> None:
    if not result.curve:
        _say(console, "No episode has ended: try more --steps.")
        return
    best = max(value for _, value in result.curve)
    _say(
        console,
        f"{len(result.curve)} episodes: return {result.curve[-1][1]:.1f} in the last, {best:.1f} "
        f"in the best.\n{result.seconds:.0f} s, {result.decision_seconds:.0f} s of them for "
        f"{result.decisions} decisions, {result.update_seconds:.0f} s for learning.",
    )


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
