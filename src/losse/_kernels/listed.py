"""Sums of listed rows of a matrix, each times a number: products with sparse features.

A product with features of which a sixth is not zero takes a sixth of the operations of a full one,
if the rows that it reads stay in cache while others need them.
"""

from typing import Any

import numpy as np

from losse._kernels.blas import add_product
from losse._kernels.jit import kernel
from losse._kernels.simd import LINE, add, load, multiply, multiply_add, splat, store

BAND = 256
"""Columns of the result that are worked at in one go: two kilobytes of each row."""
AT_ONCE = 8
"""Rows that are read while a sum is in a register."""
SPARSE = 0.2
"""Share of entries that are not zero from which on a full product is quicker."""


@kernel
def _add_rows(out, at, M, rows, values, k, last, first, stop):  # type: ignore[no-untyped-def]
    """out[at + j] += sum of values[i] * M[rows[i] + j] for k <= i < last, in whole lines of j."""
    lanes = LINE // M.itemsize
    while k < last:
        i, a = rows[k], splat(values[k])
        if k + AT_ONCE <= last:
            b, c, d = splat(values[k + 1]), splat(values[k + 2]), splat(values[k + 3])
            e, f = splat(values[k + 4]), splat(values[k + 5])
            g, h = splat(values[k + 6]), splat(values[k + 7])
            i1, i2, i3, i4 = rows[k + 1], rows[k + 2], rows[k + 3], rows[k + 4]
            i5, i6, i7 = rows[k + 5], rows[k + 6], rows[k + 7]
            for j in range(first, stop, lanes):
                s = multiply_add(a, load(M, i + j), load(out, at + j))
                t = multiply(e, load(M, i4 + j))
                s = multiply_add(b, load(M, i1 + j), s)
                t = multiply_add(f, load(M, i5 + j), t)
                s = multiply_add(c, load(M, i2 + j), s)
                t = multiply_add(g, load(M, i6 + j), t)
                s = multiply_add(d, load(M, i3 + j), s)
                t = multiply_add(h, load(M, i7 + j), t)
                store(out, at + j, add(s, t))
            k += AT_ONCE
        elif k + 2 <= last:
            i1, b = rows[k + 1], splat(values[k + 1])
            for j in range(first, stop, lanes):
                s = multiply_add(a, load(M, i + j), load(out, at + j))
                store(out, at + j, multiply_add(b, load(M, i1 + j), s))
            k += 2
        else:
            for j in range(first, stop, lanes):
                store(out, at + j, multiply_add(a, load(M, i + j), load(out, at + j)))
            k += 1


@kernel
def combine_rows(indices, values, P, out):  # type: ignore[no-untyped-def]
    """out = Phi P; P and out have rows padded to whole lines.

    Some active cells of all rows at a time: they are cells of the same grids, so that few rows of P
    are read, which stay in cache meanwhile. So P comes from memory once.
    """
    n, K = indices.shape
    D = P.shape[1]
    starts = indices.astype(np.int64) * D
    out[:] = 0.0
    for k in range(0, K, AT_ONCE):
        last = min(k + AT_ONCE, K)
        for q in range(0, D, BAND):
            stop = min(q + BAND, D)
            for r in range(n):
                _add_rows(out, r * D, P, starts[r], values[r], k, last, q, stop)


@kernel
def _is_sparse(left):  # type: ignore[no-untyped-def]
    """Whether few entries are not zero."""
    count = 0
    for r in range(left.shape[0]):
        for i in range(left.shape[1]):
            count += left[r, i] != 0.0
    return count <= SPARSE * left.size


@kernel
def _add_sparse(left, right, out, factor):  # type: ignore[no-untyped-def]
    """out += factor left^T right, by the entries of ``left`` that are not zero."""
    n, m = left.shape
    columns = right.shape[1]
    wide, far = right.strides[0] // right.itemsize, out.strides[0] // out.itemsize
    starts = np.zeros(m + 1, dtype=np.int64)
    for r in range(n):
        for i in range(m):
            starts[i + 1] += left[r, i] != 0.0
    for i in range(m):
        starts[i + 1] += starts[i]
    rows, values = np.empty(starts[m], dtype=np.int64), np.empty(starts[m], dtype=right.dtype)
    place = starts[:-1].copy()
    for r in range(n):
        for i in range(m):
            if left[r, i] != 0.0:
                rows[place[i]], values[place[i]] = r * wide, factor * left[r, i]
                place[i] += 1
    lanes = LINE // right.itemsize
    whole = columns // lanes * lanes
    for q in range(0, whole, BAND):
        stop = min(q + BAND, whole)
        for i in range(m):
            _add_rows(out, i * far, right, rows, values, starts[i], starts[i + 1], q, stop)
    for i in range(m):
        for k in range(starts[i], starts[i + 1]):
            row = right[rows[k] // wide]
            for j in range(whole, columns):
                out[i, j] += values[k] * row[j]


def add_product_of_rows(left: Any, right: Any, out: Any, factor: float = 1.0) -> None:
    """Add factor left^T right to ``out``, whether most entries of ``left`` are zero or not.

    All may be parts of larger row-major arrays of one precision.

    >>> out = np.zeros((3, 9))
    >>> add_product_of_rows(np.eye(5, 3), np.ones((5, 9)), out, -1.0)
    >>> out[:, 0]
    array([-1., -1., -1.])
    """
    if not (left.size and right.size):
        return
    if left.dtype == right.dtype == out.dtype and _is_sparse(left):
        _add_sparse(left, right, out, factor)
    else:
        add_product(left, right, out, factor)
