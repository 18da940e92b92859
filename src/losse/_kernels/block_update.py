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

Only cells that no recent step touched need their full row. The recent steps are kept in a ring.
"""

import numpy as np

from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, LINE, add, load, multiply_add, splat, store
from losse._kernels.small_solve import factor_and_solve

# Steps remembered. More saves full rows but lengthens the sums; 4 measured best at 30 grids.
RECENT = 4
# Rows of A multiplied together, so that W is read from cache once for all of them.
ROWS = 8


@kernel
def rows_times(A, rows, count, W, out):  # type: ignore[no-untyped-def]
    """out[k] = A[rows[k]] @ W for k < count; eight rows by two lines of outputs at a time."""
    S = W.shape[1]
    lanes = LINE // W.itemsize
    real = W.dtype.type
    none = splat(real(0.0))
    last = count - 1
    for k in range(0, count, ROWS):
        k1, k2, k3, k4 = min(k + 1, last), min(k + 2, last), min(k + 3, last), min(k + 4, last)
        k5, k6, k7 = min(k + 5, last), min(k + 6, last), min(k + 7, last)
        a0, a1, a2, a3 = A[rows[k]], A[rows[k1]], A[rows[k2]], A[rows[k3]]
        a4, a5, a6, a7 = A[rows[k4]], A[rows[k5]], A[rows[k6]], A[rows[k7]]
        for q in range(0, S, 2 * lanes):
            s0, s1, s2, s3, s4, s5, s6, s7 = none, none, none, none, none, none, none, none
            t0, t1, t2, t3, t4, t5, t6, t7 = none, none, none, none, none, none, none, none
            wide = q + lanes < S
            if wide:
                for d in range(A.shape[1]):
                    w, v = load(W, d * S + q), load(W, d * S + q + lanes)
                    x0, x1 = splat(real(a0[d])), splat(real(a1[d]))
                    x2, x3 = splat(real(a2[d])), splat(real(a3[d]))
                    s0, t0 = multiply_add(x0, w, s0), multiply_add(x0, v, t0)
                    s1, t1 = multiply_add(x1, w, s1), multiply_add(x1, v, t1)
                    s2, t2 = multiply_add(x2, w, s2), multiply_add(x2, v, t2)
                    s3, t3 = multiply_add(x3, w, s3), multiply_add(x3, v, t3)
                    x4, x5 = splat(real(a4[d])), splat(real(a5[d]))
                    x6, x7 = splat(real(a6[d])), splat(real(a7[d]))
                    s4, t4 = multiply_add(x4, w, s4), multiply_add(x4, v, t4)
                    s5, t5 = multiply_add(x5, w, s5), multiply_add(x5, v, t5)
                    s6, t6 = multiply_add(x6, w, s6), multiply_add(x6, v, t6)
                    s7, t7 = multiply_add(x7, w, s7), multiply_add(x7, v, t7)
            else:
                for d in range(A.shape[1]):
                    w = load(W, d * S + q)
                    s0 = multiply_add(splat(real(a0[d])), w, s0)
                    s1 = multiply_add(splat(real(a1[d])), w, s1)
                    s2 = multiply_add(splat(real(a2[d])), w, s2)
                    s3 = multiply_add(splat(real(a3[d])), w, s3)
                    s4 = multiply_add(splat(real(a4[d])), w, s4)
                    s5 = multiply_add(splat(real(a5[d])), w, s5)
                    s6 = multiply_add(splat(real(a6[d])), w, s6)
                    s7 = multiply_add(splat(real(a7[d])), w, s7)
            store(out, k * S + q, s0)
            store(out, k1 * S + q, s1)
            store(out, k2 * S + q, s2)
            store(out, k3 * S + q, s3)
            store(out, k4 * S + q, s4)
            store(out, k5 * S + q, s5)
            store(out, k6 * S + q, s6)
            store(out, k7 * S + q, s7)
            if wide:
                o = q + lanes
                store(out, k * S + o, t0)
                store(out, k1 * S + o, t1)
                store(out, k2 * S + o, t2)
                store(out, k3 * S + o, t3)
                store(out, k4 * S + o, t4)
                store(out, k5 * S + o, t5)
                store(out, k6 * S + o, t6)
                store(out, k7 * S + o, t7)


@kernel
def _subtract_step(row, cells, step, out, o):  # type: ignore[no-untyped-def]
    """out[o:] -= sum_k row[cells[k]] * step[k], the effect of an earlier step on one residual."""
    K = cells.shape[0]
    S = step.shape[1]
    for q in range(0, S, 2 * LANES):
        a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        wide = q + LANES < S
        if wide:
            for k in range(0, K - 1, 2):
                x, y = splat(np.float64(row[cells[k]])), splat(np.float64(row[cells[k + 1]]))
                a = multiply_add(x, load(step, k * S + q), a)
                b = multiply_add(x, load(step, k * S + q + LANES), b)
                c = multiply_add(y, load(step, (k + 1) * S + q), c)
                d = multiply_add(y, load(step, (k + 1) * S + q + LANES), d)
            if K % 2 == 1:
                b = multiply_add(
                    splat(np.float64(row[cells[K - 1]])), load(step, (K - 1) * S + q + LANES), b
                )
            b = multiply_add(splat(-1.0), add(b, d), load(out, o + q + LANES))
            store(out, o + q + LANES, b)
        else:
            for k in range(0, K - 1, 2):
                a = multiply_add(splat(np.float64(row[cells[k]])), load(step, k * S + q), a)
                c = multiply_add(
                    splat(np.float64(row[cells[k + 1]])), load(step, (k + 1) * S + q), c
                )
        if K % 2 == 1:
            a = multiply_add(splat(np.float64(row[cells[K - 1]])), load(step, (K - 1) * S + q), a)
        store(out, o + q, multiply_add(splat(-1.0), add(a, c), load(out, o + q)))


@kernel
def _enter(row, cells, phi, x, block):  # type: ignore[no-untyped-def]
    """row[cells] += x * phi, and a copy of the result: one row of A_ss."""
    for m in range(cells.shape[0]):
        v = row[cells[m]] + x * phi[m]
        row[cells[m]] = v
        block[m] = v


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
    A, B, W, W_like_A, squares, indices, values, Y, weights, total, ridge,
    clock, last_active, recent_cells, recent_steps, recent_ridge, system, scratch, product,
):  # fmt: skip
    """Algorithm 2 over the rows of a batch, in place, for a square symmetric A.

    ``total`` is the weight of all samples before this batch; the new one is returned. B, W and Y
    have rows of whole lines; ``W_like_A`` is W in A's precision (W itself for doubles), since
    products of two precisions are slow. ``clock`` counts rows; ``recent_*`` and ``last_active`` are
    the ring of steps. ``system`` (K, padded K + S), ``scratch`` (2, K, S) and ``product``
    (ROWS, columns of W_like_A) are aligned work space.
    """
    n, K = indices.shape
    S = W.shape[1]
    residual, step = scratch[0], scratch[1]
    error = np.empty(S)
    stale = np.empty(K, dtype=np.int64)
    place = np.empty(K, dtype=np.int64)
    for r in range(n):
        cells, phi, weight = indices[r], values[r], weights[r]
        now = clock + r
        total += weight
        ridge_now = ridge * total
        for j in range(S):
            error[j] = Y[r, j]
            squares[j] += weight * Y[r, j] * Y[r, j]
        for k in range(K):
            for j in range(S):
                error[j] -= phi[k] * W[cells[k], j]
        # R_s before the sample enters. A row of A is updated (line 5) while it is in cache.
        count = 0
        for k in range(K):
            i = cells[k]
            then = last_active[i]
            if now - then > RECENT:
                stale[count], place[count] = i, k
                count += 1
                continue
            for j in range(S):
                residual[k, j] = recent_ridge[then % RECENT] * W[i, j]
            for t in range(then + 1, now):
                ring = t % RECENT
                _subtract_step(A[i], recent_cells[ring], recent_steps[ring], residual, k * S)
            _enter(A[i], cells, phi, weight * phi[k], system[k])
        for m in range(0, count, ROWS):
            some = stale[m : min(m + ROWS, count)]
            rows_times(A, some, some.shape[0], W_like_A, product)
            for p in range(some.shape[0]):
                k = place[m + p]
                for j in range(S):
                    residual[k, j] = B[some[p], j] - product[p, j]
                _enter(A[some[p]], cells, phi, weight * phi[k], system[k])
        for k in range(K):
            i = cells[k]
            for j in range(S):
                B[i, j] += weight * phi[k] * Y[r, j]  # line 6
                residual[k, j] += weight * phi[k] * error[j] - ridge_now * W[i, j]
        used = _solve(A, cells, ridge_now, residual, system, step)  # line 7
        ring = now % RECENT
        for k in range(K):
            i = cells[k]
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
