"""Gradient steps on the stages of a cascade: products of small blocks, all in single precision.

A stage has directions P (inputs, units), offsets c, weights W (units, outputs), affine weights L
(inputs, outputs) and constants: see `losse._kernels.cascade`. The stages of a cascade are alike, so
each kind of weights is one array; inputs that the first stage does not have are zero.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from losse._kernels.block import (
    LINE_OF,
    ROWS,
    TALL,
    WIDE,
    add_products,
    every,
    plus,
    read,
    read_block,
    write_block,
    zeros,
)
from losse._kernels.cascade import bend
from losse._kernels.jit import kernel
from losse._kernels.simd import LINE, aligned, padded

Single = npt.NDArray[np.float32]

_FLOATS = LINE // 4
_WIDE_FLOATS = len(WIDE) // len(LINE_OF) * _FLOATS


class Weights(NamedTuple):
    """Weights of all stages, or their gradients; rows are whole lines."""

    directions: Single
    """(stages, inputs, units)"""
    offsets: Single
    """(stages, units)"""
    weights: Single
    """(stages, units, outputs)"""
    affine: Single
    """(stages, inputs, outputs)"""
    constant: Single
    """(stages, outputs)"""


class Scratch(NamedTuple):
    """What a minibatch leaves behind for its gradients, and room for these."""

    inputs: Single
    """(stages, rows, inputs)"""
    units: Single
    """(stages, rows, units)"""
    outer: Single
    """Slopes of the units after their offsets, (stages, rows, units)."""
    inner: Single
    """Slopes before, (stages, rows, units)."""
    outputs: Single
    """(rows, outputs)"""
    errors: Single
    """Gradients with respect to the outputs of a stage, (rows, outputs)."""
    slopes: Single
    """The same for the units, (rows, units)."""
    turned: Single
    """Weights of a stage, outputs first, (outputs, units)."""
    handed: Single
    """Directions along the outputs of the stage before, (units, outputs)."""
    straight: Single
    """Affine weights of these, (outputs, outputs)."""


def new_weights(
    stages: int, inputs: int, units: int, outputs: int
) -> tuple[Single, Callable[[int], Weights]]:
    """Four flat arrays of zeros, and a function that returns one of them in its parts."""
    M, S = padded(units, np.float32), padded(outputs, np.float32)
    shapes = Weights((inputs, M), (M,), (M, S), (inputs, S), (S,))  # type: ignore[arg-type]
    sizes = [stages * int(np.prod(shape)) for shape in shapes]
    flat = aligned((4, sum(sizes)), np.float32)

    def parts(row: int) -> Weights:
        cut = np.split(flat[row], np.cumsum(sizes)[:-1])
        return Weights(
            *(part.reshape(stages, *shape) for part, shape in zip(cut, shapes, strict=True))
        )

    return flat, parts


def new_scratch(weights: Weights, rows: int) -> Scratch:
    """Room for a minibatch of so many rows."""
    stages, inputs, units = weights.directions.shape
    outputs = weights.constant.shape[1]
    of_units = (stages, rows, units)
    shapes = (
        *((stages, rows, inputs), of_units, of_units, of_units),
        *((rows, outputs), (rows, outputs), (rows, units)),
        *((outputs, units), (units, outputs), (outputs, outputs)),
    )
    return Scratch(*(aligned(shape, np.float32) for shape in shapes))


@kernel
def _block(A, offsets, step, steps, B, across, column, columns, C, into, add):  # type: ignore[no-untyped-def]
    sums = zeros(B, offsets, columns)
    for k in range(steps):
        sums = add_products(sums, A, offsets, k * step, read(B, k * across + column, columns))
    if add:
        sums = plus(sums, read_block(C, into, column, columns))
    write_block(C, into, column, sums)


@kernel
def _strip(A, row, step, rows, steps, B, across, column, columns, C, along, add):  # type: ignore[no-untyped-def]
    tall = rows // len(TALL) * len(TALL)
    for r in range(0, tall, len(TALL)):
        offsets, into = every(r * row, row, TALL), every(r * along, along, TALL)
        _block(A, offsets, step, steps, B, across, column, columns, C, into, add)
    whole = tall + (rows - tall) // len(ROWS) * len(ROWS)
    for r in range(tall, whole, len(ROWS)):
        offsets, into = every(r * row, row, ROWS), every(r * along, along, ROWS)
        _block(A, offsets, step, steps, B, across, column, columns, C, into, add)
    paired = whole + (rows - whole) // 2 * 2
    for r in range(whole, paired, 2):
        offsets, into = every(r * row, row, (0, 0)), every(r * along, along, (0, 0))
        _block(A, offsets, step, steps, B, across, column, columns, C, into, add)
    for r in range(paired, rows):
        offsets, into = every(r * row, row, (0,)), every(r * along, along, (0,))
        _block(A, offsets, step, steps, B, across, column, columns, C, into, add)


@kernel
def product(A, row, step, rows, steps, B, C, add):  # type: ignore[no-untyped-def]
    """C = A B, or C += A B, where A[r, k] is at r * row + k * step; the others are contiguous.

    >>> A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 16), np.float32)
    >>> C = np.zeros((2, 16), np.float32)
    >>> product(A, 3, 1, 2, 3, B, C, False)
    >>> C[:, 0]
    array([ 3., 12.], dtype=float32)
    >>> T = np.zeros((3, 16), np.float32)
    >>> product(A, 1, 3, 3, 2, np.ones((2, 16), np.float32), T, False)
    >>> T[:, 0]
    array([3., 5., 7.], dtype=float32)
    """
    columns = B.shape[1]
    whole = columns // _WIDE_FLOATS * _WIDE_FLOATS
    for column in range(0, whole, _WIDE_FLOATS):
        _strip(A, row, step, rows, steps, B, columns, column, WIDE, C, columns, add)
    for column in range(whole, columns, _FLOATS):
        _strip(A, row, step, rows, steps, B, columns, column, LINE_OF, C, columns, add)


@kernel
def _turn(A, into):  # type: ignore[no-untyped-def]
    """The transpose of A."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            into[j, i] = A[i, j]


@kernel
def outputs_of(own, scratch, n, first, width):  # type: ignore[no-untyped-def]
    """Outputs of the last stage for the n rows whose inputs are in the scratch.

    The ``first`` inputs of the first stage are there, and of the others ``width``; outputs of the
    stage before follow these.
    """
    stages, d, m = own.directions.shape
    out = scratch.outputs
    for s in range(stages):
        V, F = scratch.inputs[s], scratch.units[s]
        if s > 0:
            for r in range(n):
                for j in range(d - width):
                    V[r, width + j] = out[r, j]
        inputs = d if s > 0 else first
        product(V, d, 1, n, inputs, own.directions[s], F, False)
        bend(F[:n], own.offsets[s], scratch.outer[s], scratch.inner[s])
        for r in range(n):
            out[r] = own.constant[s]
        product(V, d, 1, n, inputs, own.affine[s], out, True)
        product(F, m, 1, n, m, own.weights[s], out, True)


@kernel
def gradients(own, into, scratch, n, first, width, outputs):  # type: ignore[no-untyped-def]
    """Gradients of an error whose derivatives in the last outputs are in the scratch.

    Beyond the ``outputs`` that there are, numbers of a line are zero, as are gradients of the first
    stage beyond its inputs.
    """
    stages, d, m = own.directions.shape
    S = own.constant.shape[1]
    G, back = scratch.errors, scratch.slopes
    for s in range(stages - 1, -1, -1):
        V, F, outer, inner = scratch.inputs[s], scratch.units[s], scratch.outer[s], scratch.inner[s]
        inputs = d if s > 0 else first
        product(F, 1, m, m, n, G, into.weights[s], False)
        product(V, 1, d, inputs, n, G, into.affine[s], False)
        into.constant[s] = 0.0
        for r in range(n):
            into.constant[s] += G[r]
        _turn(own.weights[s, :, :outputs], scratch.turned)
        product(G, S, 1, n, outputs, scratch.turned, back, False)
        offsets = into.offsets[s]
        offsets[:] = 0.0
        for r in range(n):
            for u in range(m):
                b = back[r, u] * outer[r, u]
                offsets[u] += b
                back[r, u] = b * inner[r, u]
        product(V, 1, d, inputs, n, back, into.directions[s], False)
        if s > 0:
            _turn(own.directions[s, width:], scratch.handed)
            _turn(own.affine[s, width:], scratch.straight)
            product(G, S, 1, n, outputs, scratch.straight, scratch.outputs, False)
            product(back, m, 1, n, m, scratch.handed, scratch.outputs, True)
            G[:n] = scratch.outputs[:n]


@kernel
def gather(V, Q, rows, width, scratch):  # type: ignore[no-untyped-def]
    """Put the inputs of some rows into the scratch, and their targets where errors go."""
    for r in range(len(rows)):
        k = rows[r]
        for j in range(V.shape[1]):
            scratch.inputs[0, r, j] = V[k, j]
        for s in range(1, len(scratch.inputs)):
            for j in range(width):
                scratch.inputs[s, r, j] = V[k, j]
        for j in range(Q.shape[1]):
            scratch.errors[r, j] = Q[k, j]


@kernel
def squared_error(own, V, Q, share, rows, width, scratch):  # type: ignore[no-untyped-def]
    """Weighted sum over rows of the squared errors' means over outputs."""
    gather(V, Q, rows, width, scratch)
    outputs_of(own, scratch, len(rows), V.shape[1], width)
    total = 0.0
    for r in range(len(rows)):
        own_total = 0.0
        for j in range(Q.shape[1]):
            own_total += (scratch.outputs[r, j] - scratch.errors[r, j]) ** 2
        total += share[rows[r]] * own_total / Q.shape[1]
    return total


@kernel
def mean_gradients(own, into, V, Q, share, rows, width, scratch):  # type: ignore[no-untyped-def]
    """Gradients of the mean squared error of some rows, weighted."""
    n, outputs = len(rows), Q.shape[1]
    gather(V, Q, rows, width, scratch)
    outputs_of(own, scratch, n, V.shape[1], width)
    each = np.float32(2.0 / (n * outputs))
    for r in range(n):
        weight = share[rows[r]] * each
        for j in range(outputs):
            scratch.errors[r, j] = weight * (scratch.outputs[r, j] - scratch.errors[r, j])
    gradients(own, into, scratch, n, V.shape[1], width, outputs)
