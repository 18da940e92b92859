"""Algorithm 2 in compiled code: the active weights, renewed one row after the other.

For the active cells s of a sample (phi, y) the paper solves, with lambda = ridge * n,

    (A_ss + lambda I) W_s  =  B_s - A_{s, not s} W_{not s}.

In terms of the residual R = B - A W this is a step D with (A_ss + lambda I) D = R_s - lambda W_s.
R_s is the costly part, K full rows of A times W. Three facts save most of it:

* Right after a step, R_i = lambda W_i for every cell i that was active in it.
* Row i of A and B changes only while i is active. So for a cell last active `age` samples ago,
  R_i = lambda' W_i - sum of A[i, s'] D' over the steps (s', D', lambda') since: a few hundred
  products instead of D.
* The new sample itself adds phi_i e to R_i, where e = y - phi^T W.

Only cells that no recent step touched need their full row, and of it only the columns of cells
whose weights are not zero. The recent steps are kept in a ring.
"""

import numpy as np

from losse._kernels.accumulate import in_pairs
from losse._kernels.block import (
    ROWS,
    VECTOR,
    add_pair,
    add_products,
    chosen,
    every,
    read,
    read_block,
    subtract_products,
    write_block,
    zeros,
)
from losse._kernels.jit import kernel
from losse._kernels.small_solve import factor_and_solve

RECENT = 4
"""Steps remembered. More saves full rows but lengthens the sums: 4 measured best at 30 grids."""
AT_ONCE = 8
"""Rows of A that are multiplied before their sums are used, while they are in cache."""


@kernel
def _rows_times(A, starts, W, column, columns, out, targets):  # type: ignore[no-untyped-def]
    S = W.shape[1]
    sums = zeros(W, starts, columns)
    for d in range(A.shape[1]):
        sums = add_products(sums, A, starts, d, read(W, d * S + column, columns))
    write_block(out, targets, column, sums)


@kernel
def rows_times(A, rows, count, W, out):  # type: ignore[no-untyped-def]
    """out[k] = A[rows[k]] @ W for k < count; a block of rows and columns at a time.

    ``A`` may be part of a larger array, as long as its rows are contiguous.
    """
    S = W.shape[1]
    lanes, stride = VECTOR // W.itemsize, A.strides[0] // A.itemsize
    numbers = np.arange(count)
    for k in range(0, count, len(ROWS)):
        starts = chosen(rows, k, count - 1, stride, ROWS)
        targets = chosen(numbers, k, count - 1, S, ROWS)
        q = 0
        while q < S:
            if q + 3 * lanes <= S:
                _rows_times(A, starts, W, q, (0, 0, 0), out, targets)
                q += 3 * lanes
            elif q + 2 * lanes <= S:
                _rows_times(A, starts, W, q, (0, 0), out, targets)
                q += 2 * lanes
            else:
                _rows_times(A, starts, W, q, (0,), out, targets)
                q += lanes


@kernel
def _listed_times(A, starts, listed, count, W, column, columns, out, targets):  # type: ignore[no-untyped-def]
    S = W.shape[1]
    sums = zeros(W, starts, columns)
    for m in range(count):
        d = np.int64(listed[m])
        sums = add_products(sums, A, starts, d, read(W, d * S + column, columns))
    write_block(out, targets, column, sums)


@kernel
def _rows_times_listed(A, rows, listed, W, outputs, out):  # type: ignore[no-untyped-def]
    """The same where rows of W that are not listed, and columns from ``outputs`` on, are zero."""
    S = W.shape[1]
    lanes = VECTOR // W.itemsize
    count, last = listed[-1], rows.shape[0] - 1
    for k in range(0, rows.shape[0], len(ROWS)):
        starts, targets = chosen(rows, k, last, A.shape[1], ROWS), every(k * S, S, ROWS)
        q = 0
        while q < outputs:
            if q + 2 * lanes < outputs:
                _listed_times(A, starts, listed, count, W, q, (0, 0, 0), out, targets)
                q += 3 * lanes
            elif q + lanes < outputs:
                _listed_times(A, starts, listed, count, W, q, (0, 0), out, targets)
                q += 2 * lanes
            else:
                _listed_times(A, starts, listed, count, W, q, (0,), out, targets)
                q += lanes


@kernel
def _subtract(A, starts, cells, step, column, columns, out, targets):  # type: ignore[no-untyped-def]
    S = step.shape[1]
    sums = read_block(out, targets, column, columns)
    for k in range(cells.shape[0]):
        vectors = read(step, k * S + column, columns)
        sums = subtract_products(sums, A, starts, np.int64(cells[k]), vectors)
    write_block(out, targets, column, sums)


@kernel
def _subtract_step(A, rows, places, count, cells, step, outputs, out):  # type: ignore[no-untyped-def]
    """out[places[k]] -= A[rows[k], cells] @ step for k < count: what an earlier step changed."""
    S = step.shape[1]
    lanes = VECTOR // step.itemsize
    for k in range(0, count, len(ROWS)):
        starts = chosen(rows, k, count - 1, A.shape[1], ROWS)
        targets = chosen(places, k, count - 1, S, ROWS)
        q = 0
        while q < outputs:
            if q + 2 * lanes < outputs:
                _subtract(A, starts, cells, step, q, (0, 0, 0), out, targets)
                q += 3 * lanes
            elif q + lanes < outputs:
                _subtract(A, starts, cells, step, q, (0, 0), out, targets)
                q += 2 * lanes
            else:
                _subtract(A, starts, cells, step, q, (0,), out, targets)
                q += lanes


@kernel
def _list(listed, cell):  # type: ignore[no-untyped-def]
    """Enter a cell into the list, unless it is there."""
    count = listed[-1]
    place = np.searchsorted(listed[:count], cell)
    if place == count or listed[place] != cell:
        for m in range(count, place, -1):
            listed[m] = listed[m - 1]
        listed[place] = cell
        listed[-1] = count + 1


@kernel
def _enter(A, i, cells, pairs, phi, x, system, k):  # type: ignore[no-untyped-def]
    """A[i, cells] += x * phi, and a copy of what the solution needs of it: a row of A_ss."""
    K, start = cells.shape[0], i * A.shape[1]
    if pairs:
        for m in range(0, K, 2):
            system[k, m], system[k, m + 1] = add_pair(A, start + cells[m], x, phi, m)
    else:
        for m in range(K):
            v = A[i, cells[m]] + x * phi[m]
            A[i, cells[m]] = v
            system[k, m] = v


@kernel
def _solve(A, cells, ridge, right, system, step):  # type: ignore[no-untyped-def]
    """(A_ss + ridge I) step = right, with A_ss already in ``system``; returns the ridge it took.

    Where rounding makes A_ss + ridge I indefinite, the ridge grows until it is not. Where no ridge
    does, because numbers have left the range of doubles, there is no step.
    """
    K = cells.shape[0]
    columns = system.shape[1] - right.shape[1]
    largest = 0.0
    for k in range(K):
        largest = max(largest, system[k, k])
    while ridge < np.inf:
        for k in range(K):
            system[k, k] += ridge
            for j in range(right.shape[1]):
                system[k, columns + j] = right[k, j]
        if factor_and_solve(system, K, step):
            return ridge
        ridge = max(10.0 * ridge, 1e-15 * largest)
        for k in range(K):
            for m in range(K):
                system[k, m] = A[cells[k], cells[m]]
    step[:] = 0.0
    return ridge


@kernel
def update_rows(  # type: ignore[no-untyped-def]
    A, B, W, W_like_A, listed, squares, outputs, indices, values, Y, weights, total, ridge,
    clock, last_active, recent_cells, recent_steps, recent_ridge, system, scratch, product,
):  # fmt: skip
    """Algorithm 2 over the rows of a batch, in place, for a square symmetric A.

    ``total`` is the weight of all samples before this batch; the new one is returned. B, W and Y
    have rows of whole lines; ``W_like_A`` is W in A's precision (W itself for doubles), since
    products of two precisions are slow. ``listed`` starts with the cells, in order, whose weights
    are not zero, and ends with their number. ``clock`` counts rows; ``recent_*`` and
    ``last_active`` are the ring of steps. ``system`` (K, padded K + S), ``scratch`` (2, K, S) and
    ``product`` (AT_ONCE, columns of W_like_A) are aligned work space.
    """
    n, K = indices.shape
    S = W.shape[1]
    residual, step = scratch[0], scratch[1]
    error = np.empty(S)
    # Those of the cells that are stale, and those that are not, the least recent ones first.
    stale, followed = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    stale_place, place = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    older = np.empty(RECENT + 2, dtype=np.int64)
    for r in range(n):
        cells, phi, weight = indices[r], values[r], weights[r]
        now, pairs = clock + r, in_pairs(indices[r])
        total += weight
        ridge_now = ridge * total
        for j in range(S):
            error[j] = Y[r, j]
            squares[j] += weight * Y[r, j] * Y[r, j]
        for k in range(K):
            for j in range(S):
                error[j] -= phi[k] * W[cells[k], j]
        # R_s before the sample enters.
        older[:] = 0
        count = 0
        for k in range(K):
            i = cells[k]
            age = now - last_active[i]
            if age > RECENT:
                stale[count], stale_place[count] = i, k
                count += 1
            else:
                older[RECENT + 1 - age] += 1
        for t in range(RECENT + 1):
            older[t + 1] += older[t]  # as many cells were last active before now - RECENT + t
        for k in range(K):
            i = cells[k]
            age = now - last_active[i]
            if age <= RECENT:
                t = RECENT - age
                followed[older[t]], place[older[t]] = i, k
                older[t] += 1
                for j in range(S):
                    residual[k, j] = recent_ridge[last_active[i] % RECENT] * W[i, j]
        for t in range(RECENT - 1):
            if older[t] > 0:
                ring = (now - RECENT + 1 + t) % RECENT
                _subtract_step(
                    A, followed, place, older[t], recent_cells[ring], recent_steps[ring],
                    outputs, residual,
                )  # fmt: skip
        for k in range(older[RECENT - 1]):
            _enter(A, followed[k], cells, pairs, phi, weight * phi[place[k]], system, place[k])
        # A row of A is updated (line 5) while it is in cache.
        for m in range(0, count, AT_ONCE):
            some = stale[m : min(m + AT_ONCE, count)]
            _rows_times_listed(A, some, listed, W_like_A, outputs, product)
            for p in range(some.shape[0]):
                k = stale_place[m + p]
                for j in range(S):
                    residual[k, j] = B[some[p], j] - product[p, j]
                _enter(A, some[p], cells, pairs, phi, weight * phi[k], system, k)
        for k in range(K):
            i = cells[k]
            for j in range(S):
                B[i, j] += weight * phi[k] * Y[r, j]  # line 6
                residual[k, j] += weight * phi[k] * error[j] - ridge_now * W[i, j]
        used = _solve(A, cells, ridge_now, residual, system, step)  # line 7
        ring = now % RECENT
        for k in range(K):
            i = cells[k]
            if W[i, 0] == 0.0:
                _list(listed, i)
            last_active[i] = now
            recent_cells[ring, k] = i
            for j in range(S):
                recent_steps[ring, k, j] = step[k, j]
                W[i, j] += step[k, j]
                W_like_A[i, j] = W[i, j]
        recent_ridge[ring] = ridge_now
        if used != ridge_now:  # R_s is then not lambda W_s: these rows must be read in full
            for k in range(K):
                last_active[cells[k]] = now - RECENT - 1
    return total
