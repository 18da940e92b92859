"""Products with a packed A: the lower triangle of grid-pair blocks, half the memory of a square.

The block of grids g >= h, of shape (size, size), is number g (g + 1) / 2 + h.
"""

import numpy as np

from losse._kernels.block_update import AT_ONCE, rows_times
from losse._kernels.jit import kernel
from losse._kernels.simd import LINE, add, load, multiply_add, splat, store


@kernel
def _rows_one_line(block, i, count, W, first, target, out):  # type: ignore[no-untyped-def]
    """Rows i to i + count (at most 4) of the pair product, one line of outputs wide."""
    S = W.shape[1]
    none = splat(W.dtype.type(0.0))
    k1, k2, k3 = min(1, count - 1), min(2, count - 1), min(3, count - 1)
    x0, x1, x2, x3 = block[i], block[i + k1], block[i + k2], block[i + k3]
    u0 = load(W, target)
    u1 = load(W, target + S) if count > 1 else none
    u2 = load(W, target + 2 * S) if count > 2 else none
    u3 = load(W, target + 3 * S) if count > 3 else none
    a0, a1, a2, a3 = none, none, none, none
    for j in range(block.shape[1]):
        t = first + j * S
        w, c = load(W, t), load(out, t)
        s0, s1, s2, s3 = splat(x0[j]), splat(x1[j]), splat(x2[j]), splat(x3[j])
        a0, a1 = multiply_add(s0, w, a0), multiply_add(s1, w, a1)
        a2, a3 = multiply_add(s2, w, a2), multiply_add(s3, w, a3)
        c = multiply_add(s1, u1, multiply_add(s0, u0, c))
        store(out, t, multiply_add(s3, u3, multiply_add(s2, u2, c)))
    store(out, target, add(load(out, target), a0))
    if count > 1:
        store(out, target + S, add(load(out, target + S), a1))
    if count > 2:
        store(out, target + 2 * S, add(load(out, target + 2 * S), a2))
    if count > 3:
        store(out, target + 3 * S, add(load(out, target + 3 * S), a3))


@kernel
def _four_rows_two_lines(block, i, W, first, target, out):  # type: ignore[no-untyped-def]
    """Rows i to i + 4 of the pair product, two lines of outputs wide: reads the block once."""
    S = W.shape[1]
    lanes = LINE // W.itemsize
    none = splat(W.dtype.type(0.0))
    x0, x1, x2, x3 = block[i], block[i + 1], block[i + 2], block[i + 3]
    o0, o1, o2, o3 = target, target + S, target + 2 * S, target + 3 * S
    u0, u1, u2, u3 = load(W, o0), load(W, o1), load(W, o2), load(W, o3)
    v0, v1, v2, v3 = (
        load(W, o0 + lanes), load(W, o1 + lanes), load(W, o2 + lanes), load(W, o3 + lanes)
    )  # fmt: skip
    a0, a1, a2, a3 = none, none, none, none
    b0, b1, b2, b3 = none, none, none, none
    for j in range(block.shape[1]):
        t = first + j * S
        w, c = load(W, t), load(out, t)
        z, d = load(W, t + lanes), load(out, t + lanes)
        s0, s1, s2, s3 = splat(x0[j]), splat(x1[j]), splat(x2[j]), splat(x3[j])
        a0, a1 = multiply_add(s0, w, a0), multiply_add(s1, w, a1)
        a2, a3 = multiply_add(s2, w, a2), multiply_add(s3, w, a3)
        b0, b1 = multiply_add(s0, z, b0), multiply_add(s1, z, b1)
        b2, b3 = multiply_add(s2, z, b2), multiply_add(s3, z, b3)
        c = multiply_add(s1, u1, multiply_add(s0, u0, c))
        d = multiply_add(s1, v1, multiply_add(s0, v0, d))
        store(out, t, multiply_add(s3, u3, multiply_add(s2, u2, c)))
        store(out, t + lanes, multiply_add(s3, v3, multiply_add(s2, v2, d)))
    store(out, o0, add(load(out, o0), a0))
    store(out, o1, add(load(out, o1), a1))
    store(out, o2, add(load(out, o2), a2))
    store(out, o3, add(load(out, o3), a3))
    store(out, o0 + lanes, add(load(out, o0 + lanes), b0))
    store(out, o1 + lanes, add(load(out, o1 + lanes), b1))
    store(out, o2 + lanes, add(load(out, o2 + lanes), b2))
    store(out, o3 + lanes, add(load(out, o3 + lanes), b3))


@kernel
def _product_of_pair(block, W, g_start, h_start, out):  # type: ignore[no-untyped-def]
    """out_g += block W_h and out_h += block^T W_g in one pass over the block of grids g > h."""
    size, S = block.shape[0], W.shape[1]
    lanes = LINE // W.itemsize
    for i in range(0, size, 4):
        count = min(4, size - i)
        q = 0
        while q < S:
            first, target = h_start * S + q, (g_start + i) * S + q
            if count == 4 and q + lanes < S:
                _four_rows_two_lines(block, i, W, first, target, out)
                q += 2 * lanes
            else:
                _rows_one_line(block, i, count, W, first, target, out)
                q += lanes


@kernel
def packed_times(A, size, W, out):  # type: ignore[no-untyped-def]
    """out = A W, all three of one precision; W and out have rows of whole lines."""
    out[:] = 0.0
    order = np.arange(size)
    pair = 0
    for g in range(W.shape[0] // size):
        for h in range(g):
            _product_of_pair(A[pair], W, g * size, h * size, out)
            pair += 1
        own = slice(g * size, (g + 1) * size)
        diagonal = np.empty((size, W.shape[1]), W.dtype)
        rows_times(A[pair], order, size, W[own], diagonal)
        out[own] += diagonal
        pair += 1


@kernel
def packed_to_square(A, size, out):  # type: ignore[no-untyped-def]
    """The full symmetric matrix."""
    pair = 0
    for g in range(out.shape[0] // size):
        for h in range(g + 1):
            for i in range(size):
                for j in range(size):
                    out[g * size + i, h * size + j] = A[pair, i, j]
                    out[h * size + j, g * size + i] = A[pair, i, j]
            pair += 1


@kernel
def _fetch(A, size, cell, row):  # type: ignore[no-untyped-def]
    """One full row of A, gathered from the blocks of its grid."""
    g, i = cell // size, cell % size
    for h in range(row.shape[0] // size):
        if h <= g:
            source = A[g * (g + 1) // 2 + h, i]
            for j in range(size):
                row[h * size + j] = source[j]
        else:
            block = A[h * (h + 1) // 2 + g]
            for j in range(size):
                row[h * size + j] = block[j, i]


@kernel
def packed_rows_times(A, size, cells, W, out):  # type: ignore[no-untyped-def]
    """out[k] = A[cells[k]] @ W."""
    rows = np.empty((AT_ONCE, W.shape[0]), W.dtype)
    order = np.arange(AT_ONCE)
    for k in range(0, cells.shape[0], AT_ONCE):
        count = min(AT_ONCE, cells.shape[0] - k)
        for m in range(count):
            _fetch(A, size, cells[k + m], rows[m])
        rows_times(rows, order, count, W, out[k : k + count])


@kernel
def packed_block(A, size, cells, out):  # type: ignore[no-untyped-def]
    """out = A_ss for ascending cells s."""
    for k in range(cells.shape[0]):
        g, i = cells[k] // size, cells[k] % size
        for m in range(k + 1):
            h, j = cells[m] // size, cells[m] % size
            v = A[g * (g + 1) // 2 + h, i, j]
            out[k, m] = v
            out[m, k] = v
