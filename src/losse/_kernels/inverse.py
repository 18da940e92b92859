"""Products of sparse features with a large dense matrix: Phi P, and Phi T^T for a few rows T."""

import numpy as np

from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, load, multiply_add, splat, store

_TILE = 4 * LANES


@kernel
def combine_rows(indices, values, P, out):  # type: ignore[no-untyped-def]
    """out = Phi P; P and out have rows padded to whole lines.

    Columns in the outer loop: the rows of P that a batch shares are then read once from memory.
    """
    n, K = indices.shape
    D = P.shape[1]
    start = 0
    while start + _TILE <= D:
        for r in range(n):
            a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for k in range(K):
                v = splat(values[r, k])
                o = np.int64(indices[r, k]) * D + start
                a = multiply_add(v, load(P, o), a)
                b = multiply_add(v, load(P, o + LANES), b)
                c = multiply_add(v, load(P, o + 2 * LANES), c)
                d = multiply_add(v, load(P, o + 3 * LANES), d)
            t = r * D + start
            store(out, t, a)
            store(out, t + LANES, b)
            store(out, t + 2 * LANES, c)
            store(out, t + 3 * LANES, d)
        start += _TILE
    while start < D:
        for r in range(n):
            a = splat(0.0)
            for k in range(K):
                o = np.int64(indices[r, k]) * D + start
                a = multiply_add(splat(values[r, k]), load(P, o), a)
            store(out, r * D + start, a)
        start += LANES


@kernel
def dot_rows(indices, values, T, out):  # type: ignore[no-untyped-def]
    """out[r, m] = phi_r . T[m]."""
    for m in range(T.shape[0]):
        row = T[m]
        for r in range(indices.shape[0]):
            s = 0.0
            for k in range(indices.shape[1]):
                s += values[r, k] * row[indices[r, k]]
            out[r, m] = s


@kernel
def quadratic_rows(indices, values, P, out):  # type: ignore[no-untyped-def]
    """out[r] = phi_r . P phi_r for a symmetric P."""
    n, K = indices.shape
    for r in range(n):
        s = 0.0
        for k in range(K):
            row = P[indices[r, k]]
            v = values[r, k]
            if v == 0.0:
                continue
            t = 0.0
            for m in range(k):
                t += values[r, m] * row[indices[r, m]]
            s += v * (2.0 * t + v * row[indices[r, k]])
        out[r] = s


@kernel
def mirror(A):  # type: ignore[no-untyped-def]
    """Copy the upper triangle onto the lower one, tile by tile."""
    n = A.shape[0]
    tile = 64
    for i0 in range(0, n, tile):
        for j0 in range(i0, n, tile):
            for j in range(j0, min(j0 + tile, n)):
                for i in range(i0, min(i0 + tile, j)):
                    A[j, i] = A[i, j]
