"""Solution for a block of active cells: a Cholesky factorisation of about a hundred rows.

At this size a library call costs more than the arithmetic, so the loops are written out. The
right-hand sides stand beside the matrix in the same rows, and the factorisation turns
[M | R] into [U | U^-T R] on its way, where M = U^T U; one back substitution is left.
"""

import numpy as np

from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, load, multiply_add, splat, store


@kernel
def _scale(M, start, stop, factor):  # type: ignore[no-untyped-def]
    for o in range(start, stop, LANES):
        store(M, o, multiply_add(splat(factor), load(M, o), splat(0.0)))


@kernel
def _subtract(M, target, source, length, factor):  # type: ignore[no-untyped-def]
    for o in range(0, length, LANES):
        a = multiply_add(splat(-factor), load(M, source + o), load(M, target + o))
        store(M, target + o, a)


@kernel
def factor_and_solve(M, K, X):  # type: ignore[no-untyped-def]
    """Solve for ``X`` (K, S); ``M`` is (K, columns + S), columns >= K; rows are whole lines.

    Reads the upper triangle of M's first K columns. Overwrites M. Returns False, with X
    undefined, if the matrix is not positive definite in floating point.
    """
    width = M.shape[1]
    S = X.shape[1]
    columns = width - S
    k = 0
    while k < K:
        panel = min(4, K - k)
        for p in range(k, k + panel):
            pivot = M[p, p]
            if not pivot > 0.0:
                return False
            first = p // LANES * LANES
            _scale(M, p * width + first, (p + 1) * width, 1.0 / np.sqrt(pivot))
            for i in range(p + 1, k + panel):
                _subtract(M, i * width + first, p * width + first, width - first, M[p, i])
        if panel == 4:
            for i in range(k + 4, K, 2):
                j = min(i + 1, K - 1)  # an odd last row is worked on twice, with the same result
                c0, c1 = splat(-M[k, i]), splat(-M[k + 1, i])
                c2, c3 = splat(-M[k + 2, i]), splat(-M[k + 3, i])
                d0, d1 = splat(-M[k, j]), splat(-M[k + 1, j])
                d2, d3 = splat(-M[k + 2, j]), splat(-M[k + 3, j])
                for o in range(i // LANES * LANES, width, LANES):
                    u0, u1 = load(M, k * width + o), load(M, (k + 1) * width + o)
                    u2, u3 = load(M, (k + 2) * width + o), load(M, (k + 3) * width + o)
                    a, b = load(M, i * width + o), load(M, j * width + o)
                    a, b = multiply_add(c0, u0, a), multiply_add(d0, u0, b)
                    a, b = multiply_add(c1, u1, a), multiply_add(d1, u1, b)
                    a, b = multiply_add(c2, u2, a), multiply_add(d2, u2, b)
                    a, b = multiply_add(c3, u3, a), multiply_add(d3, u3, b)
                    store(M, i * width + o, a)
                    store(M, j * width + o, b)
        k += panel
    for i in range(K - 1, -1, -1):
        inverse = 1.0 / M[i, i]
        for q in range(0, S, LANES):
            a, b = load(M, i * width + columns + q), splat(0.0)
            for j in range(i + 1, K - 1, 2):
                a = multiply_add(splat(-M[i, j]), load(X, j * S + q), a)
                b = multiply_add(splat(-M[i, j + 1]), load(X, (j + 1) * S + q), b)
            if (K - 1 - i) % 2 == 1:
                a = multiply_add(splat(-M[i, K - 1]), load(X, (K - 1) * S + q), a)
            a = multiply_add(splat(1.0), a, b)
            store(X, i * S + q, multiply_add(splat(inverse), a, splat(0.0)))
    return True
