"""The shape of an experiment: its settings, its runs, and the choice of hyperparameters.

An experiment is a module with the names of `Experiment`. Its runs are data: a `Run` says
everything that decides the result, so a finished run is recognised and never computed again.

The work is done by `execute`, in another process with one thread. Modules that only some methods
need (JAX, River) are imported there, so that the command line starts quickly and a table can be
drawn without them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from losse.runs.record import Key, Record, file_name, key_of
from losse.runs.table import Table

if TYPE_CHECKING:
    from matplotlib.animation import Animation
    from matplotlib.figure import Figure

Engine = Literal["local", "ray"]
"""Where runs are computed."""

SWEEP_SEED = 10_000
"""First seed of the runs that choose hyperparameters: far from those of the final runs."""


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """Settings that every experiment has on the command line."""

    preset: Literal["quick", "paper"] = "quick"
    """`quick` takes minutes and shows the trend; `paper` has the paper's seeds and sweeps."""
    seeds: int | None = None
    """Number of repeats; by default that of the preset."""
    methods: tuple[str, ...] | None = None
    """Methods to run; by default all."""
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Number of processes, of one thread each; 0 runs everything in this one."""
    engine: Engine = "local"
    """`local` starts processes here; `ray` uses a cluster of Ray, or a local one of that size."""
    out: Path | None = None
    """Folder of records, table and figures; else results/<experiment>, or results/quick/<...>."""
    allow_dirty: bool = False
    """Run the paper preset although code is not committed, and store the patch with the records."""

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")
        if self.workers < 0:
            raise ValueError(f"workers must be 0 or more, got {self.workers}")

    @property
    def variant(self) -> str:
        """A folder within the experiment's, for runs that must not mix with the others."""
        return ""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(CommonSettings):
    """Settings of an experiment whose runs are agents in environments."""

    KNOWN: ClassVar[Collection[str]] = ()
    """Environments that the experiment has; its own settings say them."""

    envs: tuple[str, ...] | None = None
    """Environments to train in; by default those of the preset."""
    steps: int | None = None
    """Environment steps; by default each task's own number."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for env in self.envs or ():
            if env not in self.KNOWN:
                raise ValueError(f"no task {env!r}; choose from: {', '.join(self.KNOWN)}")


@dataclass(frozen=True)
class Run:
    """One learner on one problem with one seed: what becomes one record.

    `options` holds everything else that decides the result, the length of the stream as well as the
    learning rate, as plain JSON values; it becomes the record's `settings`. `swept` names those
    options that differ between runs of one method, setting and seed, and so belong to the name.

    >>> run = Run("random-walk", "nn-online", 0.5, 3, {"samples": 100, "rate": 0.01})
    >>> run.name
    'nn-online_0.5_seed3'
    >>> Run("random-walk", "nn-online", 0.5, 3, run.options, swept=("rate",)).name
    'nn-online_0.5_rate=0.01_seed3'
    """

    experiment: str
    method: str
    setting: str | float
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    swept: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The key of the run's record."""
        return key_of(self.method, self.setting, self.seed, self.options)

    @property
    def name(self) -> str:
        """The run in one readable word."""
        swept = [f"{key}={self.options[key]}" for key in self.swept]
        return file_name(self.method, self.setting, *swept, f"seed{self.seed}")

    def record(
        self,
        score: float,
        *,
        seconds: float,
        curve: Sequence[tuple[float, float]] = (),
        details: Mapping[str, Any] | None = None,
    ) -> Record:
        """Make the record of this run."""
        return Record(
            experiment=self.experiment,
            method=self.method,
            setting=self.setting,
            seed=self.seed,
            score=float(score),
            curve=curve,
            settings=self.options,
            seconds=seconds,
            details=details or {},
        )


class Experiment(Protocol):
    """Names that the module of an experiment defines."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The name on the command line and in records."""

    @property
    def METHODS(self) -> tuple[str, ...]:  # noqa: N802
        """All methods, in the order of the table."""

    @property
    def CONTROLS(self) -> tuple[str, ...]:  # noqa: N802
        """Methods that run only if they are asked for."""

    @property
    def NEEDS(self) -> Mapping[str, tuple[str, ...]]:  # noqa: N802
        """Packages beyond the core that a method imports, by method."""

    @property
    def SEEDS_AT_ONCE(self) -> Mapping[str, int]:  # noqa: N802
        """For methods that learn several seeds together: the largest number in one call."""

    @property
    def Settings(self) -> type[CommonSettings]:  # noqa: N802
        """The settings, a frozen dataclass that is also the command line."""

    def sweep(self, settings: Any) -> list[Run]:
        """The runs whose scores choose hyperparameters; may be empty."""

    def final(self, settings: Any, swept: list[Record]) -> list[Run]:
        """The runs that the table reports, given the records of all runs of the sweep."""

    def execute(self, settings: Any, runs: Sequence[Run]) -> list[Record]:
        """Compute runs that differ in nothing but the seed; one, unless SEEDS_AT_ONCE says more."""

    def table(self, records: Sequence[Record]) -> Table:
        """Table that summarises the final records."""

    def draw(self, records: Sequence[Record]) -> Mapping[str, Figure | Animation]:
        """Draw the final records: figures by file name, without an ending."""


def methods_of(
    settings: CommonSettings, known: Sequence[str], controls: Sequence[str] = ()
) -> tuple[str, ...]:
    """The methods asked for, all known ones by default; controls only if they are asked for.

    >>> methods_of(CommonSettings(methods=("tile",)), ("losse", "fourier"))
    Traceback (most recent call last):
    ValueError: unknown method 'tile'; choose from: losse, fourier
    """
    for method in settings.methods or ():
        if method not in (*known, *controls):
            choices = ", ".join((*known, *controls))
            raise ValueError(f"unknown method {method!r}; choose from: {choices}")
    return tuple(known) if settings.methods is None else settings.methods


def no_sweep(settings: CommonSettings) -> list[Run]:
    """No runs: the `sweep` of an experiment in which nothing is left to choose."""
    return []


def folder_of(settings: CommonSettings, experiment: str) -> Path:
    """The folder of an experiment's records, apart for the two presets unless `out` is given.

    >>> folder_of(CommonSettings(preset="paper"), "sparsity").as_posix()
    'results/sparsity'
    """
    if settings.out is not None:
        return settings.out
    quick = ["quick"] if settings.preset == "quick" else []
    return Path("results", *quick, experiment, settings.variant)


def best(
    records: Sequence[Record], method: str, setting: str | float | None, options: Sequence[str]
) -> dict[str, Any]:
    """The values of `options` with the lowest mean score in a sweep, at one setting or at all.

    Of equal ones the first in the records is chosen. A learner that diverges (its score is not a
    number) with one seed is no candidate.

    >>> scores = {0.1: [5.0, 1.0], 0.01: [2.0, 2.0]}
    >>> sweep = [
    ...     Record(experiment="e", method="nn", setting=0, seed=seed, score=score,
    ...            settings={"rate": rate, "samples": 100})
    ...     for rate, values in scores.items() for seed, score in enumerate(values)
    ... ]
    >>> best(sweep, "nn", 0, ["rate"])
    {'rate': 0.01}
    """
    scores: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        if record.method == method and setting in (None, record.setting):
            key = tuple(record.settings[name] for name in options)
            scores.setdefault(key, []).append(record.score)
    if not scores:
        raise ValueError(f"no records of a sweep of {method} at {setting}")
    means = {key: float(np.mean(values)) for key, values in scores.items()}
    chosen = min(means, key=lambda key: means[key] if math.isfinite(means[key]) else math.inf)
    return dict(zip(options, chosen, strict=True))
