"""Predictions of a stage of the cascade: two small matrix products around smooth units.

The units, thousands for each row, are all the cost there is. They are computed in single precision,
whose rounding (1e-7) is far below what the grids behind them resolve, and summed block by block.
"""

import numpy as np

from losse._kernels.block import (
    LINE_OF,
    ROWS,
    TALL,
    add_products,
    every,
    plus,
    read,
    read_block,
    write_block,
    zeros,
)
from losse._kernels.jit import kernel
from losse._kernels.simd import LINE, aligned_rows, clamp, divide, load, multiply_add, splat, store

UNITS = 128
"""Units computed at once; their number is a multiple of this."""
BOUND = 3.0
"""Of a projection, in standard deviations."""

_FLOATS = LINE // 4
# Rows that share a block of weights while it is in the nearest cache.
_TILE = 32 // len(TALL) * len(TALL)
# Numbers beyond this only differ in how far beyond every bound they are, and float32 ends at 3e38.
_HUGE = 1e15
# tanh(x) = x p(x^2) / q(x^2) for |x| <= 7.8, where it is one but for 3e-7; the largest error is
# 1.5e-7. Fitted by iteratively reweighted least squares.
_END = np.float32(7.8)
_P0, _P1 = np.float32(0.9999992423764227), np.float32(0.1271758872564416)
_P2, _P3 = np.float32(2.702538974708782e-03), np.float32(7.218427712479423e-06)
_P4, _Q1 = np.float32(-6.262648430105586e-09), np.float32(0.4605064173929239)
_Q2, _Q3 = np.float32(2.287439039098912e-02), np.float32(1.976116180192907e-04)
_HALF, _ONE, _ZERO, _BOUND = np.float32(0.5), np.float32(1.0), np.float32(0.0), np.float32(BOUND)
_MINUS, _TWO, _WITHIN = np.float32(-1.0), np.float32(2.0), np.float32(1.0 / BOUND)


@kernel
def _tanh(x):  # type: ignore[no-untyped-def]
    x = clamp(x, _END)
    s = multiply_add(x, x, splat(_ZERO))
    p = multiply_add(s, splat(_P4), splat(_P3))
    q = multiply_add(s, splat(_Q3), splat(_Q2))
    p = multiply_add(p, s, splat(_P2))
    q = multiply_add(q, s, splat(_Q1))
    p = multiply_add(p, s, splat(_P1))
    q = multiply_add(q, s, splat(_ONE))
    p = multiply_add(p, s, splat(_P0))
    return divide(multiply_add(p, x, splat(_ZERO)), q)


@kernel
def _bend(U, rows, offsets, first):  # type: ignore[no-untyped-def]
    """h sigmoid(2 h) in place, where h = BOUND tanh(u) + offset and 2 sigmoid(2 h) = 1 + tanh h."""
    for o in range(0, UNITS, _FLOATS):
        c = load(offsets, first + o)
        for r in range(rows):
            h = multiply_add(_tanh(load(U, r * UNITS + o)), splat(_BOUND), c)
            half = multiply_add(h, splat(_HALF), splat(_ZERO))
            store(U, r * UNITS + o, multiply_add(half, _tanh(h), half))


@kernel
def bend(U, offsets, outer, inner):  # type: ignore[no-untyped-def]
    """h sigmoid(2 h) in place, where h = BOUND tanh(u / BOUND) + offset; rows are whole lines.

    ``outer`` becomes the derivative in h, and ``inner`` that of h in u.
    """
    n, m = U.shape
    zero, one, two, minus = splat(_ZERO), splat(_ONE), splat(_TWO), splat(_MINUS)
    for r in range(n):
        for o in range(0, m, _FLOATS):
            t = _tanh(multiply_add(load(U, r * m + o), splat(_WITHIN), zero))
            h = multiply_add(t, splat(_BOUND), load(offsets, o))
            gate = multiply_add(_tanh(h), splat(_HALF), splat(_HALF))  # sigmoid(2 h)
            bent = multiply_add(h, gate, zero)
            store(U, r * m + o, bent)
            shut = multiply_add(gate, minus, one)
            store(outer, r * m + o, multiply_add(multiply_add(bent, shut, zero), two, gate))
            store(inner, r * m + o, multiply_add(multiply_add(t, minus, zero), t, one))


@kernel
def _project(V, inputs, directions, first, U, units):  # type: ignore[no-untyped-def]
    """U = V directions for a block of rows and `UNITS` units."""
    F, m = directions.shape
    for o in range(0, UNITS, _FLOATS):
        sums = zeros(directions, inputs, LINE_OF)
        for f in range(F):
            sums = add_products(sums, V, inputs, f, read(directions, f * m + first + o, LINE_OF))
        write_block(U, units, o, sums)


@kernel
def _combine(U, units, count, weights, first, total, outputs):  # type: ignore[no-untyped-def]
    """total += U weights for a block of rows and some units."""
    S = weights.shape[1]
    for q in range(0, S, _FLOATS):
        sums = zeros(weights, units, LINE_OF)
        for u in range(count):
            sums = add_products(sums, U, units, u, read(weights, (first + u) * S + q, LINE_OF))
        write_block(total, outputs, q, plus(sums, read_block(total, outputs, q, LINE_OF)))


@kernel
def _add_units(V, start, rows, first, directions, offsets, weights, affine, U, total):  # type: ignore[no-untyped-def]
    """Add what a block of units contributes to the outputs of some rows."""
    F, S = directions.shape[0], weights.shape[1]
    inputs, outputs = every(start * F, F, rows), every(start * S, S, rows)
    units = every(0, UNITS, rows)
    if first == 0:
        _combine(V, inputs, F, affine, 0, total, outputs)
    _project(V, inputs, directions, first, U, units)
    _bend(U, len(rows), offsets, first)
    _combine(U, units, UNITS, weights, first, total, outputs)


@kernel
def stage_outputs(X, directions, offsets, weights, affine, constant, out):  # type: ignore[no-untyped-def]
    """out = weights^T h sigmoid(2 h) + affine^T x + constant, h = 3 tanh(directions^T x) + offsets.

    ``directions`` (F, units), ``offsets`` (units), ``weights`` (units, outputs) and ``affine``
    (F, outputs) are floats with rows of whole lines, units a multiple of `UNITS`; ``constant`` and
    ``out`` are doubles. A row's result does not depend on the others.
    """
    F, units = directions.shape
    S = weights.shape[1]
    n = X.shape[0]
    V = np.empty((_TILE, F), np.float32)
    U = aligned_rows(len(TALL), UNITS // 2).view(np.float32)
    total = aligned_rows(_TILE, S // 2).view(np.float32)
    for start in range(0, n, _TILE):
        count = min(_TILE, n - start)
        tall = count // len(TALL) * len(TALL)
        whole = tall + (count - tall) // len(ROWS) * len(ROWS)
        for r in range(count):
            for f in range(F):
                v = X[start + r, f]
                v = v if v < _HUGE else _HUGE
                V[r, f] = v if v > -_HUGE else -_HUGE
        total[:] = 0.0
        for first in range(0, units, UNITS):
            for r in range(0, tall, len(TALL)):
                _add_units(V, r, TALL, first, directions, offsets, weights, affine, U, total)
            for r in range(tall, whole, len(ROWS)):
                _add_units(V, r, ROWS, first, directions, offsets, weights, affine, U, total)
            for r in range(whole, count):
                _add_units(V, r, (0,), first, directions, offsets, weights, affine, U, total)
        for r in range(count):
            for j in range(constant.shape[0]):
                out[start + r, j] = constant[j] + total[r, j]
