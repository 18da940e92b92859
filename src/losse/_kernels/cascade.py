"""What a stage of the cascade predicts: two small matrix products around smooth units.

The units, thousands for each row, are all the cost there is. They are computed in single precision,
whose rounding (1e-7) is far below what the grids behind them resolve; their sums are doubles.
"""

import numpy as np

from losse._kernels.block import LINE_OF, ROWS, add_products, every, read, write_block, zeros
from losse._kernels.jit import kernel
from losse._kernels.simd import LINE, clamp, divide, load, multiply_add, splat, store

UNITS = 128
"""Units computed at once; their number is a multiple of this."""
BOUND = 3.0
"""Of a projection, in standard deviations."""

_FLOATS = LINE // 4
_AT_ONCE = len(ROWS)
# Rows that share a block of weights while it is in the nearest cache.
_TILE = 32
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
def _project(V, start, P, first, U):  # type: ignore[no-untyped-def]
    """U = V P for some rows of V and the units from ``first``."""
    F, m = P.shape
    rows = every(start * F, F, ROWS)
    for o in range(0, UNITS, _FLOATS):
        sums = zeros(P, ROWS, LINE_OF)
        for f in range(F):
            sums = add_products(sums, V, rows, f, read(P, f * m + first + o, LINE_OF))
        write_block(U, every(o, UNITS, ROWS), 0, sums)


@kernel
def _combine(U, W, first, out):  # type: ignore[no-untyped-def]
    """out = U W for the weights of the units from ``first``."""
    S = W.shape[1]
    rows = every(0, UNITS, ROWS)
    for q in range(0, S, _FLOATS):
        sums = zeros(W, ROWS, LINE_OF)
        for u in range(UNITS):
            sums = add_products(sums, U, rows, u, read(W, (first + u) * S + q, LINE_OF))
        write_block(out, every(q, S, ROWS), 0, sums)


@kernel
def stage_outputs(X, directions, offsets, weights, affine, out):  # type: ignore[no-untyped-def]
    """out = weights^T h sigmoid(2 h) + affine^T [x, 1], with h = 3 tanh(directions^T x) + offsets.

    ``directions`` (F, units), ``offsets`` (units) and ``weights`` (units, outputs) are floats with
    rows of whole lines, units a multiple of `UNITS`. ``affine`` (F + 1, outputs) and ``out`` are
    doubles. A row's result does not depend on the others.
    """
    F, units = directions.shape
    S = weights.shape[1]
    n = X.shape[0]
    V = np.empty((_TILE, F), np.float32)
    U = np.empty((_AT_ONCE, UNITS), np.float32)
    part = np.empty((_AT_ONCE, S), np.float32)
    total = np.empty((_TILE, affine.shape[1]))
    for start in range(0, n, _TILE):
        count = min(_TILE, n - start)
        filled = -(-count // _AT_ONCE) * _AT_ONCE
        for r in range(filled):
            x = X[start + min(r, count - 1)]  # the last row fills a block up
            t = total[r]
            t[:] = affine[F]
            for f in range(F):
                v = x[f]
                for j in range(t.shape[0]):
                    t[j] += v * affine[f, j]
                v = v if v < _HUGE else _HUGE
                V[r, f] = v if v > -_HUGE else -_HUGE
        for first in range(0, units, UNITS):
            for r in range(0, filled, _AT_ONCE):
                _project(V, r, directions, first, U)
                _bend(U, _AT_ONCE, offsets, first)
                _combine(U, weights, first, part)
                for k in range(_AT_ONCE):
                    for j in range(total.shape[1]):
                        total[r + k, j] += part[k, j]
        for r in range(count):
            out[start + r] = total[r]
