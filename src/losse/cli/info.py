"""`losse info`: versions, machine, and what a model of given settings needs and does here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numba
import numpy as np
import tyro
from threadpoolctl import threadpool_info

import losse
from losse import FTLRegressor, LosseEncoder
from losse._kernels.block import INSTRUCTIONS
from losse.cli import fail, listing
from losse.ftl.capacity import GIGABYTE, available_memory, require_memory
from losse.ftl.memories import memory_bytes
from losse.runs.provenance import environment
from losse.storage.cache import cache_folder

TRIAL_SECONDS = 1.0
"""Longest trial of each speed."""
UPDATE_ROWS, PREDICTED_ROWS = 25, 1000


@dataclass(frozen=True)
class Settings:
    """Show versions and machine; and memory and speed of a model of these settings, tried out."""

    model: Literal["recommended", "paper", "none"] = "recommended"
    """recommended: FTLRegressor(). paper: Algorithm 2 on grids. none: try nothing out."""
    inputs: int = 14
    """Inputs: the numbers of a state and of an action together."""
    outputs: int = 12
    """Outputs: the numbers of a state, the reward and the termination."""
    grids: int = 300
    """Grids of the paper's model (30 or 300 in the paper)."""
    bins: int = 10
    """Bins along each axis of a grid."""
    dtype: Literal["float64", "float32"] = "float64"
    """Numbers of the model's memories."""
    rows: Annotated[int, tyro.conf.arg(metavar="INT")] = 2000
    """Rows that the model has learned before its speed is measured."""

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "grids", "bins", "rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1.")

    def regressor(self) -> FTLRegressor:
        """A new model of these settings."""
        if self.model == "paper":
            encoder = LosseEncoder(self.grids, n_bins=self.bins, grid_dim=2)
            return FTLRegressor(encoder, solver="sparse", ridge=1e-5, dtype=self.dtype)
        return FTLRegressor(dtype=self.dtype)


def main(arguments: Sequence[str]) -> None:
    """Print what is known, then what has been tried out."""
    try:
        settings = tyro.cli(Settings, prog="losse info", args=list(arguments))
        print(listing(dict(machine())), flush=True)
        if settings.model != "none":
            print(f"\nA model of {settings.inputs} inputs and {settings.outputs} outputs, here:")
            print(listing(dict(trial(settings))))
    except (ValueError, MemoryError) as error:
        fail(str(error))


def machine() -> Iterator[tuple[str, str]]:
    """Versions, processor, threads, caches and memory, each as a name with its value.

    >>> "instructions" in dict(machine())
    True
    """
    here = environment()
    yield "losse", f"{here.versions.get('losse', 'not installed')} in {Path(losse.__file__).parent}"
    if here.revision:
        yield "revision", here.revision
    others = (f"{name} {text}" for name, text in here.versions.items() if name != "losse")
    yield "versions", ", ".join(others)
    yield "processor", here.cpu
    yield "instructions", f"{INSTRUCTIONS} (what the kernels are compiled for)"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pools = sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
    yield "threads", f"kernels {numba.get_num_threads()}, {', '.join(pools)}; {usable} processors"
    free = available_memory()
    yield "free memory", "unknown" if np.isinf(free) else f"{free / GIGABYTE:.1f} GB"
    beside = Path(losse.__file__).parent / "_kernels" / "__pycache__"
    yield "compiled code", str(numba.config.CACHE_DIR or beside)
    yield "downloads", str(cache_folder())


def trial(settings: Settings) -> Iterator[tuple[str, str]]:
    """Memory and speed of a model that learns random rows, each as a name with its value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(settings.rows + UPDATE_ROWS, settings.inputs))
    Y = np.sin(X @ rng.normal(size=(settings.inputs, settings.outputs)))
    model = settings.regressor()
    if settings.model == "paper":
        fitted = LosseEncoder(settings.grids, n_bins=settings.bins).fit(X)
        needed = memory_bytes(fitted, settings.dtype)
        require_memory(needed, f"A model of {settings.grids} grids", "Choose fewer --grids.")
    began = time.perf_counter()
    model.partial_fit(X[:UPDATE_ROWS], Y[:UPDATE_ROWS])
    model.predict(X[:UPDATE_ROWS])
    yield "first call", f"{time.perf_counter() - began:.2g} s, with loading or compiling"
    for start in range(UPDATE_ROWS, settings.rows, UPDATE_ROWS):
        part = slice(start, start + UPDATE_ROWS)
        model.partial_fit(X[part], Y[part])
    encoder = model.encoder_
    yield "encoder", f"{type(encoder).__name__} with {encoder.dimension} features"
    yield "memory", f"{memory_bytes(encoder, settings.dtype) / GIGABYTE:.3g} GB for A"
    rows = UPDATE_ROWS
    seconds = median_seconds(lambda: model.partial_fit(X[-rows:], Y[-rows:]))
    yield f"learn {rows} rows", f"{1e3 * seconds:.3g} ms ({rows / seconds:,.0f} rows a second)"
    for count in (1, PREDICTED_ROWS):
        some = np.resize(X, (count, settings.inputs))
        seconds = median_seconds(lambda some=some: model.predict(some))  # type: ignore[misc]
        rows_or_row = "row" if count == 1 else "rows"
        yield (
            f"predict {count} {rows_or_row}",
            f"{1e3 * seconds:.3g} ms ({count / seconds:,.0f} a second)",
        )


def median_seconds(call: Callable[[], object]) -> float:
    """Median time of a call, over at most a second and at least one call."""
    spent: list[float] = []
    while sum(spent) < TRIAL_SECONDS and len(spent) < 100:
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return float(np.median(spent))
