"""Memories A and B in three layouts, of which the number of features decides.

A is symmetric. Up to a few thousand features it is a full square, which is fastest to read row by
row. Beyond that, only the lower triangle is kept, as blocks of grid pairs; features beside the
grids, which are active in every row, make a border.
"""

import math

import numpy as np
import numpy.typing as npt

from losse.encoders import Encoder
from losse.encoders.grid import GridEncoder
from losse.ftl.memories import base
from losse.ftl.memories.base import Memory, NotLearnedError
from losse.ftl.memories.bordered import BorderedMemory
from losse.ftl.memories.packed import PackedMemory
from losse.ftl.memories.square import SquareMemory

__all__ = ["Memory", "NotLearnedError", "is_packed", "memory_bytes", "memory_shape", "new_memory"]


def memory_shape(encoder: Encoder) -> tuple[int, ...]:
    """Shape of A for this encoder."""
    if grids := _packed_grids(encoder):
        n, size = grids.n_grids, grids.cells_per_grid
        return n * (n + 1) // 2, size, size
    return encoder.dimension, encoder.dimension


def memory_bytes(encoder: Encoder, dtype: npt.DTypeLike) -> float:
    """Size of A for this encoder, before it is allocated."""
    return float(math.prod(memory_shape(encoder)) * np.dtype(dtype).itemsize)


def new_memory(encoder: Encoder, n_outputs: int, dtype: npt.DTypeLike) -> Memory:
    """Empty memories for an encoder's features, in the layout that suits their number."""
    if grids := _packed_grids(encoder):
        sizes = (grids.n_grids, grids.cells_per_grid, grids.n_active)
        if grids.n_terms:
            return BorderedMemory(*sizes, grids.n_terms, n_outputs, dtype)
        return PackedMemory(*sizes, n_outputs, dtype)
    return SquareMemory(encoder.dimension, n_outputs, dtype)


def is_packed(encoder: Encoder) -> bool:
    """Whether A is kept packed for this encoder's features."""
    return _packed_grids(encoder) is not None


def _packed_grids(encoder: Encoder) -> GridEncoder | None:
    """The encoder, if its grids are to be packed; dense features have no grids."""
    large = encoder.dimension > base.SQUARE_LIMIT
    return encoder if large and isinstance(encoder, GridEncoder) else None
