"""Quadratic forms of sparse features, their products with a few rows, and a symmetric copy."""

import numpy as np

from losse._kernels.accumulate import in_pairs
from losse._kernels.block import fused, read_pair, sum_of, two
from losse._kernels.jit import kernel


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


_CHUNK = 8
"""Active cells of two or so grids: the part of P that pairs them stays in cache for all rows."""


@kernel
def _quadratic_part(index, value, P, k0, k1, m0):  # type: ignore[no-untyped-def]
    """Sum of v_k v_m P[i_k, i_m] for k in [k0, k1) and a chunk of m whose cells come in pairs."""
    D = P.shape[1]
    j0, j1 = np.int64(index[m0]), np.int64(index[m0 + 2])
    j2, j3 = np.int64(index[m0 + 4]), np.int64(index[m0 + 6])
    w0, w1 = read_pair(value, m0), read_pair(value, m0 + 2)
    w2, w3 = read_pair(value, m0 + 4), read_pair(value, m0 + 6)
    none = two(0.0)
    a, b = none, none
    for k in range(k0, k1):
        o, v = np.int64(index[k]) * D, two(value[k])
        s = fused(w1, read_pair(P, o + j1), fused(w0, read_pair(P, o + j0), none))
        t = fused(w3, read_pair(P, o + j3), fused(w2, read_pair(P, o + j2), none))
        a, b = fused(v, s, a), fused(v, t, b)
    return sum_of(a) + sum_of(b)


@kernel
def quadratic_rows(indices, values, P, out):  # type: ignore[no-untyped-def]
    """out[r] = phi_r . P phi_r for a symmetric P of contiguous rows.

    Pairs of chunks of active cells in the outer loops, rows in the inner one: cells in the same
    places of different rows are cells of the same grids, so that the same part of P is read.
    """
    n, K = indices.shape
    out[:] = 0.0
    pairs = True
    for r in range(n):
        pairs = pairs and in_pairs(indices[r, : K // 2 * 2])
    for k0 in range(0, K, _CHUNK):
        k1 = min(k0 + _CHUNK, K)
        for m0 in range(0, k1, _CHUNK):
            times, m1 = 1.0 if m0 == k0 else 2.0, min(m0 + _CHUNK, K)
            for r in range(n):
                index, value = indices[r], values[r]
                if pairs and m1 == m0 + _CHUNK:
                    s = _quadratic_part(index, value, P, k0, k1, m0)
                else:
                    s = 0.0
                    for k in range(k0, k1):
                        row, t = P[index[k]], 0.0
                        for m in range(m0, m1):
                            t += value[m] * row[index[m]]
                        s += value[k] * t
                out[r] += times * s


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
