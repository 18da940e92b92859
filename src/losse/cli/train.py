"""`losse train`: train an agent with a world model on any Gymnasium environment."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gymnasium
import tyro
from rich.console import Console

from losse.cli import fail
from losse.cli.train_view import TrainView
from losse.runs.record import Record, file_name
from losse.runs.store import read_records, write_record
from losse.storage.jsonfile import plain

if TYPE_CHECKING:
    from losse.dyna.training import Training
    from losse.dyna.watch import Progress

INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended

Agent = Literal["dqn", "qrdqn", "sac", "td3", "ddpg", "tqc", "crossq"]
Model = Literal[
    "losse",
    "full-replay",
    "online",
    "si",
    "coreset",
    "model-free",
    "model-free-matched",
    "oracle",
]
SearchControl = Literal["uniform", "on-policy", "prioritised", "hill-climbing"]


@dataclass(frozen=True)
class Settings:
    """Train an agent with a world model, evaluate it along the way, and keep all of it."""

    env: str
    """Id of a Gymnasium environment, such as losse/Gridworld-v0, MountainCar-v0 or Hopper-v5."""
    agent: Agent = "dqn"
    """The agent; dqn and qrdqn for discrete actions, the others for continuous ones."""
    backend: Literal["auto", "sbx", "sb3"] = "auto"
    """Library of the agent; by default SBX (JAX) where it has the agent, else SB3 (PyTorch)."""
    model: Model = "losse"
    """World model, or none: with one gradient step per training call, or with as many (matched).
    With oracle the model is the truth, for the environments of discrete control."""
    steps: int = 15_000
    """Environment steps."""
    seed: int = 0
    """Of agent, model and environment."""
    planning_steps: int = 16
    """Gradient steps per training call on imagined data, after one on real data."""
    update_every: int = 25
    """Environment steps between two updates of the world model."""
    search_control: SearchControl = "uniform"
    """Where imagination starts."""
    horizon: int = 1
    """Imagined steps from each start."""
    real_share: str = "auto"
    """Share of real data in each minibatch (0 to 1), alternate (whole minibatches), or auto."""
    learning_rate: float | None = None
    """Of the agent; by default that of its library."""
    batch_size: int | None = None
    """Rows of a minibatch; by default that of the library."""
    hidden: tuple[int, ...] | None = None
    """Units of the agent's hidden layers; by default those of the library."""
    target_update_gradient_steps: int = 100
    """For dqn and qrdqn: gradient steps between updates of the target network."""
    rescale_obs: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Map observations to [-1, 1] by their bounds: agents learn small numbers much faster so."""
    exploring_starts: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Start episodes of training anywhere, in the environments of discrete control."""
    train_limit: int | None = None
    """Steps of an episode of training; by default as the environment has it."""
    envs: int = 1
    """Environments that run side by side."""
    eval_every: int = 500
    """Environment steps between evaluations."""
    eval_episodes: int = 5
    """Episodes of an evaluation."""
    checkpoint_every: int = 5000
    """Environment steps between checkpoints."""
    out: Path | None = None
    """Folder for record, figure, agent and model; by default results/train/<env>_<agent>."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on from the last checkpoint in this folder, if there is one."""

    def training(self) -> Training:
        """What is to be done, without where to."""
        from losse.dyna.training import Training  # takes seconds, which --help need not wait for

        options: dict[str, Any] = {}
        if self.learning_rate is not None:
            options["learning_rate"] = self.learning_rate
        if self.batch_size is not None:
            options["batch_size"] = self.batch_size
        if self.hidden is not None:
            options["policy_kwargs"] = {"net_arch": list(self.hidden)}
        return Training(
            env=self.env,
            agent=self.agent,
            backend=self.backend,
            model=self.model,
            steps=self.steps,
            seed=self.seed,
            n_envs=self.envs,
            planning_steps=self.planning_steps,
            update_every=self.update_every,
            search_control=self.search_control,
            horizon=self.horizon,
            real_share=_share(self.real_share),
            target_update_gradient_steps=self.target_update_gradient_steps,
            rescale_obs=self.rescale_obs,
            exploring_starts=self.exploring_starts,
            train_limit=self.train_limit,
            eval_every=self.eval_every,
            eval_episodes=self.eval_episodes,
            agent_options=options,
        )

    def folder(self) -> Path:
        """Where the record and the figure go."""
        return self.out or Path("results", "train", file_name(self.env, self.agent))


def main(arguments: Sequence[str]) -> None:
    """Train with the options of the command line."""
    settings = tyro.cli(Settings, prog="losse train", args=list(arguments))
    console = Console()
    try:
        run(settings, console)
    except (ValueError, TypeError, FloatingPointError, gymnasium.error.Error) as error:
        fail(str(error))
    except KeyboardInterrupt:
        console.print("Interrupted. The same command with --resume goes on from the checkpoint.")
        raise SystemExit(INTERRUPTED) from None


def run(settings: Settings, console: Console) -> Record:
    """Train, write the record and draw all records of the folder."""
    from losse.cli.train_figure import draw
    from losse.dyna.training import train

    training, folder = settings.training(), settings.folder()
    saved = folder / file_name(settings.model, f"seed{settings.seed}")
    if (saved / "latest").exists() and not settings.resume:
        raise ValueError(
            f"{saved} holds a run already: add --resume to go on, or choose another --out."
        )
    with TrainView(console, training) as view, warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        result = train(
            training,
            folder=saved,
            checkpoint_every=settings.checkpoint_every,
            resume=settings.resume,
            report=view.show,
        )
    record = record_of(training, result)
    written = write_record(record, folder)
    figures = draw(read_records(folder), folder)
    _summarise(console, result)
    console.print(f"Record and figure: {written}, {figures[0]}", soft_wrap=True)
    console.print(f"Agent and world model: {saved}", soft_wrap=True)
    return record


def record_of(training: Training, result: Progress) -> Record:
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


def _summarise(console: Console, result: Progress) -> None:
    last = result.curve[-1][1] if result.curve else math.nan
    first = "never" if result.first_end is None else f"at step {result.first_end}"
    console.print(
        f"Return {last:.1f} at the end, {result.score:.1f} over all evaluations; first episode "
        f"that ended by itself {first}.\n{result.seconds:.0f} s of training, "
        f"{100 * result.model_share:.0f} % of it the world model's.",
        soft_wrap=True,
    )


def _share(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
