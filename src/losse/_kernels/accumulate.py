"""Growth of the memories: A += sum of w phi phi^T and B += sum of w phi y^T (Algorithm 1)."""

import numpy as np

from losse._kernels.block import add_pair
from losse._kernels.jit import kernel


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
def add_square(A, indices, values, weights):  # type: ignore[no-untyped-def]
    """A += sum_r w_r phi_r phi_r^T for a full square A."""
    K = indices.shape[1]
    for r in range(indices.shape[0]):
        cells, phi = indices[r], values[r]
        if in_pairs(cells):
            for k in range(K):
                start, x = np.int64(cells[k]) * A.shape[1], weights[r] * phi[k]
                for m in range(0, K, 2):
                    add_pair(A, start + cells[m], x, phi, m)
        else:
            for k in range(K):
                row, x = A[cells[k]], weights[r] * phi[k]
                for m in range(K):
                    row[cells[m]] += x * phi[m]


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
