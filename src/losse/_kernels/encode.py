"""Features of an input: scaling, random projection, sigmoid, binning (section 3.2)."""

import numpy as np

from losse._kernels.block import LINE_OF, ROWS, add_products, every, read, write_block, zeros
from losse._kernels.jit import kernel
from losse._kernels.simd import (
    LANES,
    ROUNDING,
    aligned_rows,
    at_most,
    clamp,
    divide,
    floor,
    load,
    multiply,
    multiply_add,
    picked,
    power_of_two,
    splat,
    store,
    store_whole,
    subtract,
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

    exp(-h) is 2^k exp(-r), |r| <= ln 2 / 2, where the polynomial (Chebyshev) has an error of 2e-17.
    Beyond 700 the result is 0 or 1 anyway.
    """
    h = clamp(h, 700.0)
    rounded = multiply_add(h, splat(-_LOG2E), splat(ROUNDING))
    k = subtract(rounded, splat(ROUNDING))
    r = multiply_add(k, splat(_LN2_LOW), multiply_add(k, splat(_LN2_HIGH), h))
    p = splat(-2.5114882786996687e-08)
    p = multiply_add(p, r, splat(2.763265575933203e-07))
    p = multiply_add(p, r, splat(-2.755722491836887e-06))
    p = multiply_add(p, r, splat(2.480148543844738e-05))
    p = multiply_add(p, r, splat(-0.00019841269909260645))
    p = multiply_add(p, r, splat(0.0013888888952356135))
    p = multiply_add(p, r, splat(-0.008333333333309507))
    p = multiply_add(p, r, splat(0.04166666666648794))
    p = multiply_add(p, r, splat(-0.16666666666666702))
    p = multiply_add(p, r, splat(0.5000000000000019))
    p = multiply_add(p, r, splat(-1.0))
    p = multiply_add(p, r, splat(1.0))
    return divide(splat(1.0), multiply_add(p, power_of_two(rounded), splat(1.0)))


@kernel
def _project_block(Z, start, projection, H, rows):  # type: ignore[no-untyped-def]
    """H = Z projection for a block of rows."""
    F, axes = projection.shape
    sources, targets = every(start * F, F, rows), every(start * H.shape[1], H.shape[1], rows)
    for a in range(0, axes, LANES):
        sums = zeros(projection, rows, LINE_OF)
        for f in range(F):
            sums = add_products(sums, Z, sources, f, read(projection, f * axes + a, LINE_OF))
        write_block(H, targets, a, sums)


@kernel
def project_rows(X, first, count, shift, scale, limit, projection, squash, Z, H):  # type: ignore[no-untyped-def]
    """H = P clip((x - shift) * scale) for some rows of X, through a sigmoid if ``squash``.

    ``projection`` is (n_features, axes) with rows of whole lines, as has ``H``; Z is scratch.
    """
    F, axes = projection.shape
    width = H.shape[1]
    for r in range(count):
        for f in range(F):
            v = (X[first + r, f] - shift[f]) * scale[f]
            v = v if v < limit else limit  # two selects: min and max would branch, for NaN's sake
            Z[r, f] = v if v > -limit else -limit
    whole = count // len(ROWS) * len(ROWS)
    for r in range(0, whole, len(ROWS)):
        _project_block(Z, r, projection, H, ROWS)
    for r in range(whole, count):
        _project_block(Z, r, projection, H, (0,))
    if squash:
        for r in range(count):
            for o in range(r * width, r * width + axes, LANES):
                store(H, o, _sigmoid(load(H, o)))


@kernel
def project(X, shift, scale, limit, projection, out):  # type: ignore[no-untyped-def]
    """The projection of every row, for the dense encoders."""
    n = X.shape[0]
    Z = np.empty(X.shape)
    project_rows(X, 0, n, shift, scale, limit, projection, False, Z, out)


_first_axes = picked(0, 2, 4, 6, 8, 10, 12, 14)
_second_axes = picked(1, 3, 5, 7, 9, 11, 13, 15)
# Of each grid of a pair, twice: one less the offset, then the offset; or one after the other.
_rows_0 = picked(0, 0, 8, 8, 1, 1, 9, 9)
_rows_1 = picked(2, 2, 10, 10, 3, 3, 11, 11)
_rows_2 = picked(4, 4, 12, 12, 5, 5, 13, 13)
_rows_3 = picked(6, 6, 14, 14, 7, 7, 15, 15)
_columns_0 = picked(0, 8, 0, 8, 1, 9, 1, 9)
_columns_1 = picked(2, 10, 2, 10, 3, 11, 3, 11)
_columns_2 = picked(4, 12, 4, 12, 5, 13, 5, 13)
_columns_3 = picked(6, 14, 6, 14, 7, 15, 7, 15)


@kernel
def corners(H, row, n_bins, cells, weights):  # type: ignore[no-untyped-def]
    """Where a row falls in two-dimensional grids: the first of four cells, and all their weights.

    ``H`` are squashed projections; its rows, like those of ``cells`` (n, grids) and ``weights``
    (n, 4 grids), have room for whole eights of grids. Cells are numbered inside their grid. A
    saturated 1 falls into the last bin's end.
    """
    grids = cells.shape[1]
    bins, last = splat(np.float64(n_bins)), np.float64(n_bins - 1)
    one, edges = splat(1.0), splat(np.float64(n_bins + 1))
    for g in range(0, grids, LANES):
        o = 2 * (row * grids + g)
        left, right = load(H, o), load(H, o + LANES)
        x = multiply(_first_axes(left, right), bins)
        y = multiply(_second_axes(left, right), bins)
        i, j = at_most(floor(x), last), at_most(floor(y), last)
        store_whole(cells, row * grids + g, multiply_add(i, edges, j))
        u, v = subtract(x, i), subtract(y, j)
        s, t = subtract(one, u), subtract(one, v)
        o = 4 * (row * grids + g)
        store(weights, o, multiply(_rows_0(s, u), _columns_0(t, v)))
        store(weights, o + LANES, multiply(_rows_1(s, u), _columns_1(t, v)))
        store(weights, o + 2 * LANES, multiply(_rows_2(s, u), _columns_2(t, v)))
        store(weights, o + 3 * LANES, multiply(_rows_3(s, u), _columns_3(t, v)))


@kernel
def _bin_pairs(X, shift, scale, limit, projection, n_grids, n_bins, indices, values):  # type: ignore[no-untyped-def]
    """The same for two axes in every grid."""
    n, edges = X.shape[0], n_bins + 1
    rows, room = min(TILE, n), -(-n_grids // LANES) * LANES
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, 2 * room)
    H[:] = 0.0
    cells, weights = np.empty((1, room), dtype=np.int32), aligned_rows(1, 4 * room)
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        corners(H[r % TILE : r % TILE + 1], 0, n_bins, cells, weights)
        index, value = indices[r], values[r]
        for g in range(n_grids):
            first = np.int32(g * edges * edges + cells[0, g])
            index[4 * g] = first
            index[4 * g + 1] = first + 1
            index[4 * g + 2] = first + edges
            index[4 * g + 3] = first + edges + 1
        for k in range(4 * n_grids):
            value[k] = weights[0, k]


@kernel
def soft_bins(  # type: ignore[no-untyped-def]
    X, shift, scale, limit, projection, n_grids, n_bins, grid_dim, indices, values
):
    """Losse: the 2^grid_dim cells around a point in every grid, and their interpolation weights.

    Cells of grid g are numbered from g * (n_bins + 1)^grid_dim, row-major over its axes. The bin
    is clamped to n_bins - 1, so a saturated input stays inside its own grid.
    """
    if grid_dim == 2:
        _bin_pairs(X, shift, scale, limit, projection, n_grids, n_bins, indices, values)
        return
    edges = n_bins + 1
    cells = edges**grid_dim
    around = 1 << grid_dim
    n = X.shape[0]
    rows = min(TILE, n)
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, projection.shape[1])
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        h, index, value = H[r % TILE], indices[r], values[r]
        for g in range(n_grids):
            k = g * around
            index[k], value[k] = 0, 1.0
            size = 1
            for a in range(g * grid_dim, (g + 1) * grid_dim):
                position = h[a] * n_bins
                low = min(np.int32(position), np.int32(n_bins - 1))
                offset = position - low
                for m in range(k + size - 1, k - 1, -1):
                    first = index[m] * edges + low
                    weight = value[m]
                    index[2 * m - k] = first
                    value[2 * m - k] = weight * (1.0 - offset)
                    index[2 * m - k + 1] = first + 1
                    value[2 * m - k + 1] = weight * offset
                size *= 2
            for m in range(k, k + around):
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
