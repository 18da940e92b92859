"""How predictions are made: the active rows of W, weighted and summed."""

import numpy as np

from losse._kernels.jit import kernel
from losse._kernels.simd import LANES, add, load, multiply_add, splat, store


@kernel
def weighted_rows(indices, values, W, out):  # type: ignore[no-untyped-def]
    """out[r] = sum_k values[r, k] * W[indices[r, k]], that is phi(x)^T W for sparse phi.

    ``W`` and ``out`` have rows of a multiple of eight outputs. Two octets and two cells at a
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
