"""Which layout do the memories of a model have, and how large are they?

A is symmetric. Up to a few thousand features it is a full square, which is fastest to read row by
row. Beyond that, only the lower triangle is kept.
"""

import math

import numpy as np
import numpy.typing as npt

from losse.encoders import Encoder
from losse.encoders.grid import GridEncoder
from losse.ftl.bordered_memory import BorderedMemory
from losse.ftl.memory import Memory, SquareMemory
from losse.ftl.packed_memory import PackedMemory

SQUARE_LIMIT = 8192
"""Features up to which A is a full square: half a gigabyte of doubles."""


def is_packed(encoder: Encoder) -> bool:
    """Whether A is kept packed for this encoder's features."""
    return isinstance(encoder, GridEncoder) and encoder.dimension > SQUARE_LIMIT


def memory_shape(encoder: Encoder) -> tuple[int, ...]:
    """Of A."""
    if is_packed(encoder):
        assert isinstance(encoder, GridEncoder)
        n, size = encoder.n_grids, encoder.cells_per_grid
        return n * (n + 1) // 2, size, size
    return encoder.dimension, encoder.dimension


def memory_bytes(encoder: Encoder, dtype: npt.DTypeLike) -> float:
    """Size of A before it is allocated."""
    return float(math.prod(memory_shape(encoder)) * np.dtype(dtype).itemsize)


def new_memory(encoder: Encoder, n_outputs: int, dtype: npt.DTypeLike) -> Memory:
    """Empty memories for an encoder's features, in the layout that suits their number."""
    if is_packed(encoder):
        assert isinstance(encoder, GridEncoder)
        grids = (encoder.n_grids, encoder.cells_per_grid, encoder.n_active)
        if encoder.n_terms:
            return BorderedMemory(*grids, encoder.n_terms, n_outputs, dtype)
        return PackedMemory(*grids, n_outputs, dtype)
    return SquareMemory(encoder.dimension, n_outputs, dtype)
