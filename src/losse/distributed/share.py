"""A worker's share of a data set: from a model and some blocks to another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import ray

from losse.checks import check_rows, check_targets, check_weights
from losse.distributed.blocks import Arrays, Block, Columns, parts_of
from losse.ftl import FTLRegressor
from losse.ftl.settings import Settings

ROWS_PER_FEATURE = 16
"""Rows, over the number of features, that are learned at once, with one factorisation."""
FEW = 100
"""Rows that the given solver learns, which may take long over many: the rest is merged."""
LARGE = 8192
"""Features above which a factorisation costs more than some steps of conjugate gradients."""


class Start(NamedTuple):
    """What all shares have in common: an empty model with a fitted encoder, and the rows' form."""

    regressor: FTLRegressor
    columns: Columns
    n_features: int
    targets: tuple[int, ...]
    """Shape of the targets of one row."""

    rows_at_once: int
    """Rows that a worker gathers before it learns them."""


def begin(
    regressor: FTLRegressor, columns: Columns, blocks: Sequence[Block]
) -> tuple[Start, FTLRegressor, FTLRegressor | None, int]:
    """Freeze the encoder and the ridge on some blocks, and learn these.

    Returns
    -------
    start
        For `learn`. Its solver is the one that takes rows in with the least work.
    pattern
        Model with the given solver that has learned a few of the rows.
    rest
        Model of `start` that has learned all others; None if there are none.
    n_rows
        Number of rows learned.
    """
    parts: list[Arrays] = []
    for block in blocks:
        for part in _parts(block):
            with _named(block):
                columns = columns.completed(part)
                form = (parts[0].X.shape[1], parts[0].y.shape[1:]) if parts else (None, None)
                rows = _checked(columns.arrays(part), *form)
            if len(rows.X):
                parts.append(rows)
    rows = _joined(parts)
    settings = Settings.of(regressor)
    encoder, ridge = settings.encoder, settings.ridge
    if not encoder.fitted or ridge == "auto":
        found = FTLRegressor(**regressor.get_params(deep=False)).fit(*rows)
        encoder, ridge = found.encoder_, found.ridge_
    frozen = settings.parameters | {"encoder": encoder, "ridge": ridge, "center": settings.centred}
    pattern = FTLRegressor(**frozen).fit(*_some(rows, slice(FEW)))
    solver = "dense" if encoder.dimension <= LARGE else "auto"
    empty = FTLRegressor(**(frozen | {"solver": solver}))
    form = rows.X.shape[1], rows.y.shape[1:]
    start = Start(empty, columns, *form, ROWS_PER_FEATURE * encoder.dimension)
    rest = None
    if len(rows.X) > FEW:
        others = _some(rows, slice(FEW, None))
        rest = FTLRegressor(**empty.get_params(deep=False)).fit(*others)
    return start, pattern, rest, len(rows.X)


def learn(
    start: Start, model: FTLRegressor | None, blocks: Sequence[Block]
) -> tuple[FTLRegressor | None, int]:
    """The model that has learned some more blocks, and the number of their rows.

    None stands for a model that has learned nothing. No more than one part of a block is in memory,
    and rows that are yet to be learned.
    """
    empty = FTLRegressor(**start.regressor.get_params(deep=False))
    learned = n_rows = 0
    waiting: list[Arrays] = []
    for block in blocks:
        for part in _parts(block):
            with _named(block):
                rows = _checked(start.columns.arrays(part), start.n_features, start.targets)
                waiting.append(rows)
                n_rows += len(rows.X)
                if n_rows - learned >= start.rows_at_once:
                    model = (model or empty).partial_fit(*_joined(waiting))
                    learned = n_rows
                    waiting.clear()
    if n_rows > learned:
        with _named(blocks[-1]):
            model = (model or empty).partial_fit(*_joined(waiting))
    return model, n_rows


def merged(references: Sequence[Any]) -> FTLRegressor:
    """One model that has learned what those behind some references have, with two in memory.

    It has the parameters of the first. References to None are left out.
    """
    models = (ray.get(reference) for reference in references)
    return FTLRegressor.merged(model for model in models if model is not None)


def n_rows(block: Block) -> int:
    """Number of rows of a block."""
    columns = (part.X if isinstance(part, Arrays) else next(iter(part.values()), ())
               for part in _parts(block))  # fmt: skip
    return sum(map(len, columns))


def _some(rows: Arrays, which: slice) -> Arrays:
    """Some of the rows, which have weights."""
    assert rows.sample_weight is not None
    return Arrays(rows.X[which], rows.y[which], rows.sample_weight[which])


def _joined(parts: Sequence[Arrays]) -> Arrays:
    return parts[0] if len(parts) == 1 else Arrays(*map(np.concatenate, zip(*parts, strict=True)))


def _checked(rows: Arrays, n_features: int | None, targets: tuple[int, ...] | None) -> Arrays:
    """Rows of finite numbers, which are like those of the first block."""
    if len(rows.X) == 0:
        width = n_features if n_features is not None else 0
        return Arrays(np.empty((0, width)), np.empty((0, *(targets or ()))), np.empty(0))
    width = np.shape(rows.X)[-1] if n_features is None else n_features
    X = check_rows("X", rows.X, width)
    y = check_targets(rows.y, len(X), None)
    if targets is not None and y.shape[1:] != targets:
        raise ValueError(
            f"y has shape {y.shape}, but that of the first block (n,{','.join(map(str, targets))})."
        )
    return Arrays(X, y, check_weights(rows.sample_weight, len(X)))


def _parts(block: Block) -> Iterator[Any]:
    """Parts of a block, with errors that name it."""
    with _named(block):
        yield from parts_of(block)


@contextmanager
def _named(block: Block) -> Iterator[None]:
    """Let errors begin with the name of a block."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{block.name}: {error}") from error
    except OSError as error:
        raise OSError(f"{block.name} cannot be read: {error}") from error
    except MemoryError as error:
        raise MemoryError(f"{block.name} does not fit into the memory: {error}") from error
