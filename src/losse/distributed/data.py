"""`fit`: a data set that many workers learn, each its share, and that is merged as a tree.

Everything is a function of its arguments: a task takes a model and some blocks, and returns another
model. A task whose process dies is done again from the same arguments, so each block is learned
once, whatever happens. A worker's share is a chain of such tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import ray
from sklearn.base import clone

from losse.checks import check_count
from losse.distributed import share
from losse.distributed.blocks import Block, Columns, blocks_of
from losse.distributed.cluster import DEATHS, connected, first_line, n_cpus
from losse.ftl import FTLRegressor
from losse.ftl.settings import Settings

FAN_IN = 4
"""Models that one task merges."""

Progress = Callable[[int, int], None]
"""A function of the blocks and the rows learned so far."""


def fit(
    dataset: Any,
    regressor: FTLRegressor | None = None,
    *,
    target: str | Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    weight: str | None = None,
    n_workers: int | None = None,
    sample_rows: int = 10_000,
    blocks_per_task: int = 8,
    max_retries: int = 3,
    address: str | None = None,
    progress: Progress | None = None,
) -> FTLRegressor:
    """Learn a data set on a cluster, as if one process had seen all of it.

    The encoder and the ridge are found from the first rows, and frozen. Then each worker learns
    its share of the blocks, and what all have learned is added up, which is exact. A worker that
    dies is replaced, and what it had not finished is learned again, so that every row counts once.

    Parameters
    ----------
    dataset
        A Ray Data dataset, or an iterable of blocks: arrays ``(X, y)`` or ``(X, y,
        sample_weight)``, tables of Arrow or pandas, dicts of columns, paths of Parquet files
        (which every node must be able to read), or references to such blocks in the object
        store. Blocks in memory stay in the object store, which spills to disk, until the end.
    regressor
        Parameters to learn with; it stays as it is. None: ``FTLRegressor()``.
    target, inputs, weight
        Columns of tables: what to learn, by default from all other columns, and sample weights. A
        single name as the target makes a model of 1-d targets.
    n_workers
        Number of blocks' chains that are learned at the same time; the processors of the cluster
        by default. Each needs the memory of a model and a block.
    sample_rows
        Rows from which the encoder and the ridge are found: whole blocks from the first on, until
        there are as many. If the first blocks are unlike the rest, shuffle the blocks, or give a
        regressor with a fitted encoder and a ridge.
    blocks_per_task
        Blocks between two copies of a worker's model to the object store: what is lost at most
        when a process dies.
    max_retries
        Times that a task is done again because its process has died.
    address
        As for `losse.distributed.cluster.connected`: by default the cluster in use, or a local Ray
        for the time of the call.
    progress
        A function of the blocks and the rows learned so far.

    Returns
    -------
    FTLRegressor
        A model with the frozen encoder and ridge that has learned all rows. Its weights are the
        leader of all rows, whatever the solver.

    Raises
    ------
    ValueError
        If a block cannot be learned; the message names it.
    RuntimeError
        If a task has died more often than ``max_retries``; the message names its blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import FTLRegressor, LosseEncoder
    >>> from losse.distributed import fit
    >>> X = np.random.default_rng(0).uniform(-3, 3, (6000, 2))
    >>> blocks = [(X[k::6], np.sin(X[k::6])) for k in range(6)]
    >>> model = fit(blocks, FTLRegressor(LosseEncoder(10)), n_workers=2)  # doctest: +SKIP
    >>> model.n_samples_seen_  # doctest: +SKIP
    6000
    """
    regressor = FTLRegressor() if regressor is None else regressor
    if not isinstance(regressor, FTLRegressor):
        raise TypeError(f"regressor={regressor!r} is not an FTLRegressor.")
    settings = Settings.of(regressor)
    settings.check()
    if settings.discount < 1:
        raise ValueError(
            f"discount={settings.discount} weighs rows by their order, which many workers do not "
            "have: use discount=1."
        )
    for name, value in (("sample_rows", sample_rows), ("blocks_per_task", blocks_per_task)):
        check_count(name, value)
    if n_workers is not None:
        check_count("n_workers", n_workers)
    check_count("max_retries", max_retries, at_least=0)
    names = target if target is None or isinstance(target, str) else tuple(target)
    columns = Columns(names, None if inputs is None else tuple(inputs), weight)
    with connected(address, n_workers):
        job = _Fit(clone(regressor), columns, n_workers or n_cpus(), max_retries, progress)
        return job.learned(blocks_of(dataset), sample_rows, blocks_per_task)


class _Fit:
    """One call of `fit`: the driver, which hands out blocks and never holds a model but the last.

    All blocks are kept until the end, so that a model that is lost with its node can be made again
    from the start.
    """

    def __init__(
        self,
        regressor: FTLRegressor,
        columns: Columns,
        n_workers: int,
        max_retries: int,
        progress: Progress | None,
    ) -> None:
        self._given = regressor, columns
        self._n_workers = n_workers
        self._tries = max_retries
        self._progress = progress
        self._n_blocks = self._n_rows = 0
        self._kept: list[Block] = []

    def learned(self, blocks: Iterator[Block], sample_rows: int, per_task: int) -> FTLRegressor:
        sample = self._sample(blocks, sample_rows)
        task = self._task(share.begin, 4).remote(*self._given, sample)
        self._finish(task, sample)
        start, pattern, rest, _ = task
        models = self._shares(blocks, start, per_task)
        while len(models) > FAN_IN:
            parts = (models[k : k + FAN_IN] for k in range(0, len(models), FAN_IN))
            models = [self._task(share.merged, 1).remote(part) for part in parts]
        task = self._task(share.merged, 1).remote([pattern, rest, *models])
        whole: FTLRegressor = self._got([task], "the merging of all shares")
        return whole

    def _sample(self, blocks: Iterator[Block], wanted: int) -> list[Block]:
        """The first blocks, which have as many rows as wanted, or all."""
        sample: list[Block] = []
        rows = 0
        for block in blocks:
            sample.append(block)
            rows += self._got([self._task(share.n_rows, 1).remote(block)], block.name)
            if rows >= wanted:
                break
        if rows == 0:
            raise ValueError("dataset has no rows: pass at least one block with some.")
        return sample

    def _shares(self, blocks: Iterator[Block], start: Any, per_task: int) -> list[Any]:
        """References to the models of all shares; whoever is free takes the next blocks."""
        idle: list[Any] = [None] * self._n_workers
        running: dict[Any, tuple[list[Any], list[Block]]] = {}
        try:
            while True:
                while idle and (taken := list(islice(blocks, per_task))):
                    task = self._task(share.learn, 2).remote(start, idle.pop(), taken)
                    running[task[-1]] = task, taken
                if not running:
                    return [model for model in idle if model is not None]
                (done, *_), _ = ray.wait(list(running), num_returns=1)
                task, taken = running.pop(done)
                self._finish(task, taken)
                idle.append(task[0])
        finally:
            for left in running:
                ray.cancel(left, force=True)

    def _finish(self, task: list[Any], blocks: list[Block]) -> None:
        """Count the rows, the last that a task returns, when it is done."""
        names = blocks[0].name if len(blocks) == 1 else f"{blocks[0].name} to {blocks[-1].name}"
        self._n_rows += self._got(task, names)
        self._n_blocks += len(blocks)
        self._kept += blocks
        if self._progress is not None:
            self._progress(self._n_blocks, self._n_rows)

    def _task(self, function: Callable[..., Any], n_returns: int) -> Any:
        return ray.remote(function).options(num_returns=n_returns, max_retries=self._tries)

    def _got(self, task: list[Any], what: str) -> Any:
        """The last value that a task returns, with errors that say what they belong to."""
        try:
            return ray.get(task[-1])
        except (ray.exceptions.RayTaskError, *DEATHS) as error:
            with suppress(Exception):
                ray.get(task)  # or Ray prints the error again for each value
            if isinstance(error, ray.exceptions.RayTaskError):
                raise error.cause from None
            raise RuntimeError(
                f"{what}: the worker died, also after being started again {self._tries} times "
                f"({first_line(error)}). If it was out of memory, use fewer workers, smaller "
                "blocks or a smaller encoder. Nothing was learned."
            ) from error
