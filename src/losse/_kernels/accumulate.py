"""Growth of the memories: A += sum of w phi phi^T and B += sum of w phi y^T (Algorithm 1)."""

import numpy as np

from losse._kernels.block import add_pair
from losse._kernels.jit import kernel

CELLS, SOME = 16, 4
"""Active cells that are worked at together, on the right and on the left."""


@kernel
def add_targets(B, indices, values, weights, Y):  # type: ignore[no-untyped-def]
    """B += sum_r w_r phi_r y_r^T."""
    for r in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            i = indices[r, k]
            x = weights[r] * values[r, k]
            for j in range(B.shape[1]):
                B[i, j] += x * Y[r, j]


@kernel
def in_pairs(cells):  # type: ignore[no-untyped-def]
    """Whether every second cell is the next of the one before, as in two-dimensional grids."""
    for m in range(0, cells.shape[0] - 1, 2):
        if cells[m + 1] != cells[m] + 1:
            return False
    return cells.shape[0] % 2 == 0


@kernel
def _apart(indices, values):  # type: ignore[no-untyped-def]
    """Cells and values with `CELLS` active ones of all rows beside each other, and where those are
    in pairs."""
    n, K = indices.shape
    count = -(-K // CELLS)
    cells, phi = np.zeros((count, n, CELLS), dtype=np.int64), np.zeros((count, n, CELLS))
    pairs = np.ones(count, dtype=np.bool_)
    for b in range(count):
        for r in range(n):
            for k in range(b * CELLS, min(b * CELLS + CELLS, K)):
                cells[b, r, k - b * CELLS] = indices[r, k]
                phi[b, r, k - b * CELLS] = values[r, k]
            pairs[b] = pairs[b] and in_pairs(cells[b, r])
    return cells, phi, pairs


@kernel
def add_square(A, indices, values, weights, first, last, upper):  # type: ignore[no-untyped-def]
    """A += sum_r w_r phi_r phi_r^T for a full square A.

    Of phi_r on the left, the active cells from number ``first`` to below ``last`` count. ``upper``
    says that later ones are never lower cells: then those of earlier blocks may be left out on the
    right, so that A's upper triangle is right.

    Some active cells with some others of all rows at a time: they are cells of the same grids, and
    those parts of A stay in cache meanwhile. A sum takes rows in their order.
    """
    n, K = indices.shape
    D = np.int64(A.shape[1])
    cells, phi, pairs = _apart(indices, values)
    for k0 in range(first, last, SOME):
        own, at = k0 // CELLS, k0 % CELLS
        stop = at + min(SOME, last - k0)
        for b in range(own if upper else 0, len(cells)):
            width = min(CELLS, K - b * CELLS)
            if pairs[b] and width == CELLS:
                for r in range(n):
                    for k in range(at, stop):
                        start, x = cells[own, r, k] * D, weights[r] * phi[own, r, k]
                        for m in range(0, CELLS, 2):
                            add_pair(A, start + cells[b, r, m], x, phi[b, r], m)
            else:
                for r in range(n):
                    for k in range(at, stop):
                        row, x = A[cells[own, r, k]], weights[r] * phi[own, r, k]
                        for m in range(width):
                            row[cells[b, r, m]] += x * phi[b, r, m]


@kernel
def blocks_ascend(indices):  # type: ignore[no-untyped-def]
    """Whether no cell of an earlier block of `CELLS` active ones comes after one of a later."""
    n, K = indices.shape
    highest = -1
    for b in range(0, K, CELLS):
        low, high = indices[0, b], highest
        for r in range(n):
            for k in range(b, min(b + CELLS, K)):
                low, high = min(low, indices[r, k]), max(high, indices[r, k])
        if low <= highest:
            return False
        highest = high
    return True


@kernel
def add_packed(A, size, indices, values, weights, first, last):  # type: ignore[no-untyped-def]
    """A += sum_r w_r phi_r phi_r^T for the packed lower triangle of grid-pair blocks.

    ``A`` is (pairs, size, size); the block of grids g >= h is number g (g + 1) / 2 + h. Only
    blocks with g from ``first`` to below ``last`` are changed. Every row has the same number of
    active cells in each grid. Pairs are the outer loop, so that a block stays in cache while the
    whole batch enters it.
    """
    n, K = indices.shape
    n_grids = 1
    while n_grids * (n_grids + 1) // 2 < A.shape[0]:
        n_grids += 1
    active = K // n_grids
    # By grid, with cells numbered inside it; unsigned, so that no index is checked for its sign.
    cells = np.empty((n_grids, n, active), dtype=np.uint32)
    phi = np.empty((n_grids, n, active))
    for r in range(n):
        for k in range(last * active):
            cells[k // active, r, k % active] = indices[r, k] % size
            phi[k // active, r, k % active] = values[r, k]
    for g in range(first, last):
        for h in range(g + 1):
            block = A[g * (g + 1) // 2 + h]
            rows, row_phi, columns, column_phi = cells[g], phi[g], cells[h], phi[h]
            if active == 4:
                for r in range(n):
                    c0, c1, c2, c3 = columns[r, 0], columns[r, 1], columns[r, 2], columns[r, 3]
                    v0, v1 = column_phi[r, 0], column_phi[r, 1]
                    v2, v3 = column_phi[r, 2], column_phi[r, 3]
                    w = weights[r]
                    for k in range(4):
                        i, x = rows[r, k], w * row_phi[r, k]
                        block[i, c0] += x * v0
                        block[i, c1] += x * v1
                        block[i, c2] += x * v2
                        block[i, c3] += x * v3
            else:
                for r in range(n):
                    for k in range(active):
                        i, x = rows[r, k], weights[r] * row_phi[r, k]
                        for m in range(active):
                            block[i, columns[r, m]] += x * column_phi[r, m]
