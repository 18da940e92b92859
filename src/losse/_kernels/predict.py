"""Predictions: the active rows of W, weighted and summed."""

import numpy as np

from losse._kernels.encode import TILE, locate, project_rows
from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, add, aligned_rows, load, multiply_add, splat, store


@kernel
def weighted_rows(indices, values, W, out):  # type: ignore[no-untyped-def]
    """out[r] = sum_k values[r, k] * W[indices[r, k]], that is phi(x)^T W for sparse phi.

    ``W`` and ``out`` have rows of whole lines. Two lines and two cells at a
    time: enough independent sums to hide the latency of each.
    """
    n, K = indices.shape
    S = W.shape[1]
    for r in range(n):
        index, value = indices[r], values[r]
        q = 0
        while q < S:
            wide = q + LANES < S
            a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            if wide:
                for k in range(0, K - 1, 2):
                    v, w = splat(value[k]), splat(value[k + 1])
                    i = np.int64(index[k]) * S + q
                    j = np.int64(index[k + 1]) * S + q
                    a = multiply_add(v, load(W, i), a)
                    b = multiply_add(v, load(W, i + LANES), b)
                    c = multiply_add(w, load(W, j), c)
                    d = multiply_add(w, load(W, j + LANES), d)
            else:
                for k in range(0, K - 1, 2):
                    i = np.int64(index[k]) * S + q
                    j = np.int64(index[k + 1]) * S + q
                    a = multiply_add(splat(value[k]), load(W, i), a)
                    c = multiply_add(splat(value[k + 1]), load(W, j), c)
            if K % 2 == 1:
                v = splat(value[K - 1])
                i = np.int64(index[K - 1]) * S + q
                a = multiply_add(v, load(W, i), a)
                if wide:
                    b = multiply_add(v, load(W, i + LANES), b)
            store(out, r * S + q, add(a, c))
            if wide:
                store(out, r * S + q + LANES, add(b, d))
            q += 2 * LANES if wide else LANES


@kernel
def interpolate(X, shift, scale, limit, projection, n_grids, n_bins, W, out):  # type: ignore[no-untyped-def]
    """phi(x)^T W for Losse features on two-dimensional grids, without writing phi down.

    A prediction is bilinear interpolation in each grid's table of weights, summed over grids.
    W and out have rows of whole lines.
    """
    S = W.shape[1]
    edges = n_bins + 1
    axes = 2 * n_grids
    n = X.shape[0]
    rows = min(TILE, n)
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, projection.shape[1])
    offset = np.empty(axes)
    low = np.empty(axes, dtype=np.int64)
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        locate(H[r % TILE], n_bins, low, offset)
        for q in range(0, S, 2 * LANES):
            a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            wide = q + LANES < S
            table = q
            for g in range(n_grids):
                u, v = offset[2 * g], offset[2 * g + 1]
                i = table + (low[2 * g] * edges + low[2 * g + 1]) * S
                j = i + edges * S
                v0, v1 = splat((1.0 - u) * (1.0 - v)), splat((1.0 - u) * v)
                v2, v3 = splat(u * (1.0 - v)), splat(u * v)
                a = multiply_add(v1, load(W, i + S), multiply_add(v0, load(W, i), a))
                c = multiply_add(v3, load(W, j + S), multiply_add(v2, load(W, j), c))
                if wide:
                    i += LANES
                    j += LANES
                    b = multiply_add(v1, load(W, i + S), multiply_add(v0, load(W, i), b))
                    d = multiply_add(v3, load(W, j + S), multiply_add(v2, load(W, j), d))
                table += edges * edges * S
            store(out, r * S + q, add(a, c))
            if wide:
                store(out, r * S + q + LANES, add(b, d))
