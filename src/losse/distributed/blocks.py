"""Blocks of rows as they come from data sets: NumPy arrays, tables and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import ray

BATCH_ROWS = 65_536
"""Rows of a Parquet file that are read at once."""


class Block(NamedTuple):
    """Part of a data set that is learned as a whole."""

    name: str
    content: Any
    """Arrays, a table, a path, or a reference to one of them in the object store."""


class Arrays(NamedTuple):
    """Rows to learn, as `FTLRegressor.partial_fit` takes them."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None = None


@dataclass(frozen=True)
class Columns:
    """Columns of a table that are inputs, targets and weights.

    Examples
    --------
    >>> table = {"a": np.zeros(3), "b": np.ones(3), "y": np.arange(3.0)}
    >>> columns = Columns(target="y").completed(table)
    >>> columns.inputs
    ('a', 'b')
    >>> columns.arrays(table).X.shape
    (3, 2)
    """

    target: str | tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    weight: str | None = None

    def completed(self, part: Arrays | Mapping[str, Any]) -> Columns:
        """The same, with all other columns of a table as the inputs if none are named."""
        if self.inputs is not None or isinstance(part, Arrays):
            return self
        others = {*self._targets, self.weight}
        return replace(self, inputs=tuple(name for name in part if name not in others))

    def arrays(self, part: Arrays | Mapping[str, Any]) -> Arrays:
        """Rows of a table; arrays are returned as they are."""
        if isinstance(part, Arrays):
            return part
        y = self._matrix(part, self._targets)
        weight = None if self.weight is None else self._matrix(part, (self.weight,))[:, 0]
        X = self._matrix(part, self.completed(part).inputs or ())
        return Arrays(X, y[:, 0] if isinstance(self.target, str) else y, weight)

    @property
    def _targets(self) -> tuple[str, ...]:
        if self.target is None:
            raise ValueError(
                "it is a table, and target=None does not say which of its columns to learn: name "
                "one, or a list of several."
            )
        return (self.target,) if isinstance(self.target, str) else self.target

    @staticmethod
    def _matrix(table: Mapping[str, Any], names: Iterable[str]) -> np.ndarray:
        parts = []
        for name in names:
            if name not in table:
                raise ValueError(f"it has no column {name!r}, only {', '.join(map(repr, table))}.")
            try:
                part = np.asarray(table[name], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"column {name!r} is not made of numbers: {error}") from None
            parts.append(part.reshape(len(part), -1))
        if not parts:
            raise ValueError("no columns are left for the inputs: name them.")
        return np.concatenate(parts, axis=1)


def blocks_of(dataset: Any) -> Iterator[Block]:
    """Blocks of a Ray Data dataset, or of any iterable, numbered or named by their path.

    What is in memory goes to the object store, when its turn comes.
    """
    if hasattr(dataset, "iter_internal_ref_bundles"):
        references = (ref for bundle in dataset.iter_internal_ref_bundles()
                      for ref in bundle.block_refs)  # fmt: skip
        yield from (Block(f"block {k}", ref) for k, ref in enumerate(references))
        return
    if isinstance(dataset, (str, os.PathLike)) or not isinstance(dataset, Iterable):
        raise TypeError(
            f"dataset={dataset!r} is not a data set: pass a Ray Data dataset or an iterable of "
            "blocks, such as [(X, y), ...] or a list of Parquet files."
        )
    for k, content in enumerate(dataset):
        if isinstance(content, (str, os.PathLike)):
            yield Block(f"block {k} ({os.fspath(content)})", os.fspath(content))
        elif isinstance(content, ray.ObjectRef):
            yield Block(f"block {k}", content)
        else:
            yield Block(f"block {k}", ray.put(content))


def parts_of(block: Block) -> Iterator[Arrays | Mapping[str, Any]]:
    """Rows of a block, as arrays or tables, of which no more than one needs to be in memory."""
    content = block.content
    if isinstance(content, ray.ObjectRef):
        content = ray.get(content)
    if isinstance(content, str):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(content) as file:
            yield from map(_table, file.iter_batches(BATCH_ROWS))
    elif isinstance(content, (tuple, list)):
        if len(content) not in (2, 3):
            raise ValueError(f"it has {len(content)} arrays: expected X, y or X, y, sample_weight.")
        X, y, *weights = content
        yield Arrays(np.asarray(X), np.asarray(y), *weights)
    else:
        yield _table(content)


def _table(content: Any) -> Mapping[str, Any]:
    """A table of Arrow, Ray Data or pandas, or a dict, as columns by name."""
    from pyarrow import RecordBatch, Table
    from ray.data.block import BlockAccessor

    if isinstance(content, Mapping):
        return content
    if isinstance(content, RecordBatch):
        content = Table.from_batches([content])
    try:
        accessor = BlockAccessor.for_block(content)
    except TypeError:
        raise TypeError(
            f"it is a {type(content).__name__}: a block is (X, y), a table of Arrow or pandas, a "
            "dict of columns, or the path of a Parquet file."
        ) from None
    columns: Mapping[str, Any] = accessor.to_numpy()
    return columns
