"""Features of an input: scaling, random projection, sigmoid, binning (section 3.2)."""

import numpy as np

from losse._kernels.jit import kernel
from losse._kernels.simd import (
    LANES,
    aligned_rows,
    clamp,
    divide,
    floor,
    load,
    multiply_add,
    power_of_two,
    splat,
    store,
)

# Rows projected together before they are binned: neither step then waits for the other.
TILE = 32

_LOG2E = 1.4426950408889634
# ln 2 in two parts, so that x - k ln 2 keeps all its bits (Cody and Waite).
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6


@kernel
def _sigmoid(h):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-h)) to the last bits, eight at a time.

    exp(x) is 2^k times the Taylor series of exp(r), |r| <= ln 2 / 2, where 13 terms reach
    double precision. Beyond 700 the result is 0 or 1 anyway.
    """
    x = multiply_add(clamp(h, 700.0), splat(-1.0), splat(0.0))
    k = floor(multiply_add(x, splat(_LOG2E), splat(0.5)))
    r = multiply_add(k, splat(-_LN2_LOW), multiply_add(k, splat(-_LN2_HIGH), x))
    p = splat(1.0 / 6227020800.0)
    p = multiply_add(p, r, splat(1.0 / 479001600.0))
    p = multiply_add(p, r, splat(1.0 / 39916800.0))
    p = multiply_add(p, r, splat(1.0 / 3628800.0))
    p = multiply_add(p, r, splat(1.0 / 362880.0))
    p = multiply_add(p, r, splat(1.0 / 40320.0))
    p = multiply_add(p, r, splat(1.0 / 5040.0))
    p = multiply_add(p, r, splat(1.0 / 720.0))
    p = multiply_add(p, r, splat(1.0 / 120.0))
    p = multiply_add(p, r, splat(1.0 / 24.0))
    p = multiply_add(p, r, splat(1.0 / 6.0))
    p = multiply_add(p, r, splat(0.5))
    p = multiply_add(p, r, splat(1.0))
    p = multiply_add(p, r, splat(1.0))
    return divide(splat(1.0), multiply_add(p, power_of_two(k), splat(1.0)))


@kernel
def project_rows(X, first, count, shift, scale, limit, projection, squash, Z, H):  # type: ignore[no-untyped-def]
    """H = P clip((x - shift) * scale) for some rows of X, through a sigmoid if ``squash``.

    ``projection`` is (n_features, axes) with rows of whole lines, as has ``H``; Z is scratch.
    """
    F, axes = projection.shape
    for r in range(count):
        for f in range(F):
            v = (X[first + r, f] - shift[f]) * scale[f]
            v = v if v < limit else limit  # two selects: min and max would branch, for NaN's sake
            Z[r, f] = v if v > -limit else -limit
    for r in range(count):
        a = 0
        while a + 8 * LANES <= axes:  # eight independent sums hide each other's latency
            h0, h1, h2, h3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            h4, h5, h6, h7 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for f in range(F):
                u, o = splat(Z[r, f]), f * axes + a
                h0 = multiply_add(u, load(projection, o), h0)
                h1 = multiply_add(u, load(projection, o + LANES), h1)
                h2 = multiply_add(u, load(projection, o + 2 * LANES), h2)
                h3 = multiply_add(u, load(projection, o + 3 * LANES), h3)
                h4 = multiply_add(u, load(projection, o + 4 * LANES), h4)
                h5 = multiply_add(u, load(projection, o + 5 * LANES), h5)
                h6 = multiply_add(u, load(projection, o + 6 * LANES), h6)
                h7 = multiply_add(u, load(projection, o + 7 * LANES), h7)
            o = r * axes + a
            store(H, o, h0)
            store(H, o + LANES, h1)
            store(H, o + 2 * LANES, h2)
            store(H, o + 3 * LANES, h3)
            store(H, o + 4 * LANES, h4)
            store(H, o + 5 * LANES, h5)
            store(H, o + 6 * LANES, h6)
            store(H, o + 7 * LANES, h7)
            a += 8 * LANES
        while a < axes:
            h = splat(0.0)
            for f in range(F):
                h = multiply_add(splat(Z[r, f]), load(projection, f * axes + a), h)
            store(H, r * axes + a, h)
            a += LANES
    if squash:
        for o in range(0, count * axes, LANES):
            store(H, o, _sigmoid(load(H, o)))


@kernel
def project(X, shift, scale, limit, projection, out):  # type: ignore[no-untyped-def]
    """The projection of every row, for the dense encoders."""
    n = X.shape[0]
    Z = np.empty(X.shape)
    project_rows(X, 0, n, shift, scale, limit, projection, False, Z, out)


@kernel
def locate(h, n_bins, low, offset):  # type: ignore[no-untyped-def]
    """The bin of every axis and the place in it; a saturated 1 falls into the last bin's end."""
    for a in range(low.shape[0]):
        position = h[a] * n_bins
        low[a] = min(np.int32(position), np.int32(n_bins - 1))
        offset[a] = position - low[a]


@kernel
def soft_bins(  # type: ignore[no-untyped-def]
    X, shift, scale, limit, projection, n_grids, n_bins, grid_dim, indices, values
):
    """Losse: the 2^grid_dim cells around a point in every grid, and their interpolation weights.

    Cells of grid g are numbered from g * (n_bins + 1)^grid_dim, row-major over its axes. The bin
    is clamped to n_bins - 1, so a saturated input stays inside its own grid.
    """
    edges = n_bins + 1
    cells = edges**grid_dim
    corners = 1 << grid_dim
    axes = n_grids * grid_dim
    low = np.empty(axes, dtype=np.int64)
    offset = np.empty(axes)
    n = X.shape[0]
    rows = min(TILE, n)
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, projection.shape[1])
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        locate(H[r % TILE], n_bins, low, offset)
        index, value = indices[r], values[r]
        if grid_dim == 2:
            for g in range(n_grids):
                u, v = offset[2 * g], offset[2 * g + 1]
                first = np.int32(g * cells + low[2 * g] * edges + low[2 * g + 1])
                k = 4 * g
                index[k] = first
                index[k + 1] = first + 1
                index[k + 2] = first + edges
                index[k + 3] = first + edges + 1
                value[k] = (1.0 - u) * (1.0 - v)
                value[k + 1] = (1.0 - u) * v
                value[k + 2] = u * (1.0 - v)
                value[k + 3] = u * v
        else:
            for g in range(n_grids):
                k = g * corners
                index[k], value[k] = 0, 1.0
                size = 1
                for a in range(g * grid_dim, (g + 1) * grid_dim):
                    for m in range(k + size - 1, k - 1, -1):
                        first = index[m] * edges + low[a]
                        weight = value[m]
                        index[2 * m - k] = first
                        value[2 * m - k] = weight * (1.0 - offset[a])
                        index[2 * m - k + 1] = first + 1
                        value[2 * m - k + 1] = weight * offset[a]
                    size *= 2
                for m in range(k, k + corners):
                    index[m] += g * cells


@kernel
def hard_bins(  # type: ignore[no-untyped-def]
    X, shift, scale, limit, projection, n_grids, n_bins, grid_dim, indices
):
    """Tile coding: the one cell of every grid that holds the point."""
    n = X.shape[0]
    rows = min(TILE, n)
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, projection.shape[1])
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        h = H[r % TILE]
        for g in range(n_grids):
            cell = np.int64(g)
            for a in range(g * grid_dim, (g + 1) * grid_dim):
                cell = cell * n_bins + min(np.int64(h[a] * n_bins), n_bins - 1)
            indices[r, g] = cell
