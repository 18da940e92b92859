"""Features of an input: scaling, random projection, sigmoid, binning (section 3.2)."""

import numpy as np

from losse._kernels.block import LINE_OF, ROWS, TALL, add_products, every, read, write_block, zeros
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
    store_corners,
    store_whole,
    subtract,
)

# Rows projected together before they are binned: neither step then waits for the other.
TILE = 32 // len(TALL) * len(TALL)

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
    tall = count // len(TALL) * len(TALL)
    for r in range(0, tall, len(TALL)):
        _project_block(Z, r, projection, H, TALL)
    whole = tall + (count - tall) // len(ROWS) * len(ROWS)
    for r in range(tall, whole, len(ROWS)):
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


# Of eight grids, as their axes come in two lines: those of the grids 0, 4, 1, 5, 2, 6, 3, 7.
_first_axes = _evens = picked(0, 8, 2, 10, 4, 12, 6, 14)
_second_axes = _odds = picked(1, 9, 3, 11, 5, 13, 7, 15)
# Pairs of numbers of four grids each, in the order of the grids.
_lower_pairs = picked(0, 1, 8, 9, 2, 3, 10, 11)
_upper_pairs = picked(4, 5, 12, 13, 6, 7, 14, 15)


@kernel
def _corners_of_eight(H, source, n_bins, weights, target):  # type: ignore[no-untyped-def]
    """The first of the four cells around a point in each of eight grids, and all their weights.

    The cells come as a line in the order of `picked` above. Every shuffle is one instruction for a
    register, since it stays within 16 bytes or moves 16 bytes as a whole.
    """
    bins, last = splat(np.float64(n_bins)), np.float64(n_bins - 1)
    one, edges = splat(1.0), splat(np.float64(n_bins + 1))
    left, right = load(H, source), load(H, source + LANES)
    x = multiply(_first_axes(left, right), bins)
    y = multiply(_second_axes(left, right), bins)
    i, j = at_most(floor(x), last), at_most(floor(y), last)
    u, v = subtract(x, i), subtract(y, j)
    s, t = subtract(one, u), subtract(one, v)
    st, sv, ut, uv = multiply(s, t), multiply(s, v), multiply(u, t), multiply(u, v)
    a, b = _evens(st, sv), _evens(ut, uv)  # of the grids 0 to 3
    store(weights, target, _lower_pairs(a, b))
    store(weights, target + LANES, _upper_pairs(a, b))
    a, b = _odds(st, sv), _odds(ut, uv)
    store(weights, target + 2 * LANES, _lower_pairs(a, b))
    store(weights, target + 3 * LANES, _upper_pairs(a, b))
    return multiply_add(i, edges, j)


@kernel
def corners(H, row, n_bins, cells, weights):  # type: ignore[no-untyped-def]
    """Where a row falls in two-dimensional grids: the first of four cells, and all their weights.

    ``H`` are squashed projections; its rows, like those of ``cells`` (n, grids) and ``weights``
    (n, 4 grids), have room for whole eights of grids. Cells are numbered inside their grid. A
    saturated 1 falls into the last bin's end.
    """
    grids = cells.shape[1]
    for g in range(row * grids, (row + 1) * grids, LANES):
        store_whole(cells, g, _corners_of_eight(H, 2 * g, n_bins, weights, 4 * g))


@kernel
def _bin_pairs(X, shift, scale, limit, projection, n_grids, n_bins, indices, values):  # type: ignore[no-untyped-def]
    """The same for two axes in every grid."""
    n, edges = X.shape[0], n_bins + 1
    rows, room, size = min(TILE, n), -(-n_grids // LANES) * LANES, edges * edges
    Z, H = np.empty((rows, X.shape[1])), aligned_rows(rows, 2 * room)
    H[:] = 0.0
    few_cells, few_weights = np.empty(4 * LANES, dtype=np.int32), aligned_rows(1, 4 * LANES)
    for r in range(n):
        if r % TILE == 0:
            project_rows(X, r, min(TILE, n - r), shift, scale, limit, projection, True, Z, H)
        source, target = 2 * room * (r % TILE), r * values.shape[1]
        if n_grids < LANES:
            first = _corners_of_eight(H, source, n_bins, few_weights, 0)
            store_corners(few_cells, 0, first, 0, size, edges)
            for k in range(4 * n_grids):
                values[r, k] = few_weights[0, k]
                indices[r, k] = few_cells[k]
            continue
        for each in range(0, n_grids, LANES):
            g = min(each, n_grids - LANES)  # the last eight may begin with some of those before
            first = _corners_of_eight(H, source + 2 * g, n_bins, values, target + 4 * g)
            store_corners(indices, target + 4 * g, first, g * size, size, edges)


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
