"""Predictions: the active rows of W, weighted and summed."""

import numpy as np

from losse._kernels.block import VECTOR, add_products, read, read_block, write_block, zeros
from losse._kernels.encode import TILE, corners, project_rows
from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, add, aligned_rows, load, multiply_add, splat, store

# Vectors in two lines, and in one, two and three steps of half a line, or a line where that is one.
_WIDE = (0,) * (128 // VECTOR)
_STEP = max(1, len(_WIDE) // 4)
_ONE, _TWO, _THREE = (_WIDE[: k * _STEP] for k in (1, 2, 3))


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
def _add_grid(sums, W, table, edges, cells, weights, k, columns):  # type: ignore[no-untyped-def]
    """Add the four cells around a point in one grid."""
    S = W.shape[1]
    i, o = table + np.int64(cells[k]) * S, (4 * k,)
    sums = add_products(sums, weights, o, 0, read(W, i, columns))
    sums = add_products(sums, weights, o, 1, read(W, i + S, columns))
    i += edges * S
    sums = add_products(sums, weights, o, 2, read(W, i, columns))
    return add_products(sums, weights, o, 3, read(W, i + S, columns))


@kernel
def _add_grids(W, n_grids, edges, cells, room, weights, rows, q, columns, out, start):  # type: ignore[no-untyped-def]
    """Sums over all grids for a tile of rows, two grids at a time; ``room`` cells for each row."""
    S = W.shape[1]
    size = edges * edges * S
    for g in range(0, n_grids, 2):
        table, two = q + g * size, g + 1 < n_grids
        for r in range(rows):
            target, k = ((start + r) * S,), r * room + g
            sums = zeros(W, (0,), columns)
            if g > 0:
                sums = read_block(out, target, q, columns)
            sums = _add_grid(sums, W, table, edges, cells, weights, k, columns)
            if two:
                sums = _add_grid(sums, W, table + size, edges, cells, weights, k + 1, columns)
            write_block(out, target, q, sums)


@kernel
def interpolate(X, shift, scale, limit, projection, n_grids, n_bins, W, columns, out):  # type: ignore[no-untyped-def]
    """phi(x)^T W for Losse features on two-dimensional grids, without writing phi down.

    A prediction is bilinear interpolation in each grid's table of weights, summed over grids. Some
    rows at a time go through the grids, so that a table stays in the nearest cache meanwhile.
    W and out have rows of whole lines, of which the first ``columns`` matter: others are left as
    they are, but for those that share a vector with these.
    """
    edges = n_bins + 1
    n = X.shape[0]
    most, room = min(TILE, n), -(-n_grids // LANES) * LANES
    Z, H = np.empty((most, X.shape[1])), aligned_rows(most, 2 * room)
    H[:] = 0.0
    cells, weights = np.empty((most, room), dtype=np.int32), aligned_rows(most, 4 * room)
    flat, lanes = cells.reshape(-1), VECTOR // 8
    wide, step = len(_WIDE) * lanes, _STEP * lanes
    for start in range(0, n, TILE):
        rows = min(TILE, n - start)
        project_rows(X, start, rows, shift, scale, limit, projection, True, Z, H)
        for r in range(rows):
            corners(H, r, n_bins, cells, weights)
        q = 0
        while q < columns:
            left = columns - q
            if left > 3 * step:
                _add_grids(W, n_grids, edges, flat, room, weights, rows, q, _WIDE, out, start)
            elif left > 2 * step:
                _add_grids(W, n_grids, edges, flat, room, weights, rows, q, _THREE, out, start)
            elif left > step:
                _add_grids(W, n_grids, edges, flat, room, weights, rows, q, _TWO, out, start)
            else:
                _add_grids(W, n_grids, edges, flat, room, weights, rows, q, _ONE, out, start)
            q += wide
