"""Solution for a block of active cells: a Cholesky factorisation of about a hundred rows.

At this size a library call costs more than the arithmetic, so the loops are written out. The
right-hand sides stand beside the matrix in the same rows, and the factorisation turns
[M | R] into [U | U^-T R] on its way, where M = U^T U; one back substitution is left.
"""

import numpy as np

from losse._kernels.block import (
    REGISTERS,
    VECTOR,
    every,
    read,
    read_block,
    subtract_products,
    write_block,
)
from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, load, multiply_add, splat, store

_PANEL = (0,) * 4
"""Rows that are factored together."""
# Vectors of a block: with the rows of a panel, as many sums as leave room for what is added.
_WIDE = (0,) * (4 if REGISTERS == 32 else 3)


@kernel
def _scale(M, start, stop, factor):  # type: ignore[no-untyped-def]
    for o in range(start, stop, LANES):
        store(M, o, multiply_add(splat(factor), load(M, o), splat(0.0)))


@kernel
def _subtract(M, target, source, length, factor):  # type: ignore[no-untyped-def]
    for o in range(0, length, LANES):
        a = multiply_add(splat(-factor), load(M, source + o), load(M, target + o))
        store(M, target + o, a)


@kernel
def _subtract_factored(M, k, rows, columns, o):  # type: ignore[no-untyped-def]
    """M[k + r, o:] -= sum over the rows p < k of U[p, k + r] U[p, o:]."""
    width = M.shape[1]
    targets, numbers = every(k * width, width, rows), every(k, 1, rows)
    sums = read_block(M, targets, o, columns)
    for p in range(k):
        vectors = read(M, p * width + o, columns)
        sums = subtract_products(sums, M, numbers, p * width, vectors)
    write_block(M, targets, o, sums)


@kernel
def _subtract_solved(M, K, columns, k, rows, X, q):  # type: ignore[no-untyped-def]
    """X[k + r, q:] = right side - sum over the rows j behind the panel of U[k + r, j] X[j, q:]."""
    width, S = M.shape[1], X.shape[1]
    starts = every(k * width, width, rows)
    sums = read_block(M, starts, columns + q, (0,))
    for j in range(k + len(rows), K):
        sums = subtract_products(sums, M, starts, j, read(X, j * S + q, (0,)))
    write_block(X, every(k * S, S, rows), q, sums)


@kernel
def factor_and_solve(M, K, X):  # type: ignore[no-untyped-def]
    """Solve for ``X`` (K, S); ``M`` is (K, columns + S), columns >= K; rows are whole lines.

    Reads the upper triangle of M's first K columns. Overwrites M. Returns False, with X
    undefined, if the matrix is not positive definite in floating point.
    """
    width = M.shape[1]
    S = X.shape[1]
    lanes, wide, panel = VECTOR // 8, len(_WIDE), len(_PANEL)
    whole = K // panel * panel
    for k in range(0, K, panel):
        last = min(k + panel, K)
        o = k // lanes * lanes
        if last == k + panel:
            while o + wide * lanes <= width:
                _subtract_factored(M, k, _PANEL, _WIDE, o)
                o += wide * lanes
            while o + 2 * lanes <= width:
                _subtract_factored(M, k, _PANEL, (0, 0), o)
                o += 2 * lanes
            if o < width:
                _subtract_factored(M, k, _PANEL, (0,), o)
        else:
            first = k // LANES * LANES
            for p in range(k):
                for i in range(k, last):
                    _subtract(M, i * width + first, p * width + first, width - first, M[p, i])
        for p in range(k, last):
            pivot = M[p, p]
            if not pivot > 0.0:
                return False
            first = p // LANES * LANES
            _scale(M, p * width + first, (p + 1) * width, 1.0 / np.sqrt(pivot))
            for i in range(p + 1, last):
                _subtract(M, i * width + first, p * width + first, width - first, M[p, i])
    columns = width - S
    for k in range(K - 1, whole - 1, -1):
        for q in range(0, S, lanes):
            _subtract_solved(M, K, columns, k, (0,), X, q)
        _scale(X, k * S, (k + 1) * S, 1.0 / M[k, k])
    for k in range(whole - panel, -1, -panel):
        for q in range(0, S, lanes):
            _subtract_solved(M, K, columns, k, _PANEL, X, q)
        for i in range(k + panel - 1, k - 1, -1):
            _scale(X, i * S, (i + 1) * S, 1.0 / M[i, i])
            for p in range(k, i):
                _subtract(X, p * S, i * S, S, M[p, i])
    return True
