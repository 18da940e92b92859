"""Grids with two bins along each axis: where to cut, and what a sum of such grids predicts."""

import numpy as np

from losse._kernels.jit import kernel

_ROWS = 64


@kernel
def best_cut(bins, inputs, rows, shares, cells, n_cells, n_bins, least, ridge):
    """Which of some inputs to cut all cells at, and after which bin: the gain, the input, the bin.

    ``bins`` is (all inputs, n). ``shares`` (rows, outputs + 1) has the weighted residuals of some
    rows and their weights. The gain is by how much the squared error falls; both sides of a cell
    must have the least weight, else the cell gains nothing.
    """
    n = len(rows)
    m = shares.shape[1] - 1
    sums = np.empty((n_cells, n_bins, m + 1))
    flat, places = sums.reshape(-1), np.empty(n, dtype=np.int64)
    for r in range(n):
        places[r] = np.int64(cells[rows[r]]) * n_bins * (m + 1)
    gains = np.empty(n_bins)
    left, enough = np.empty((m + 1, n_bins)), np.empty(n_bins)
    most, where, after = 0.0, -1, 0
    for j in inputs:
        flat[:] = 0.0
        column = bins[j]
        if m == 1:  # the usual, and quicker without a loop
            for r in range(n):
                o = places[r] + 2 * np.int64(column[rows[r]])
                flat[o] += shares[r, 0]
                flat[o + 1] += shares[r, 1]
        else:
            for r in range(n):
                o = places[r] + (m + 1) * np.int64(column[rows[r]])
                for q in range(m + 1):
                    flat[o + q] += shares[r, q]
        gains[:] = 0.0
        for c in range(n_cells):
            for q in range(m + 1):
                total = 0.0
                for b in range(n_bins):
                    total += sums[c, b, q]
                    left[q, b] = total
            whole = left[m, n_bins - 1]
            for b in range(n_bins):  # without branches, so that several bins are done at a time
                other = whole - left[m, b]
                enough[b] = 1.0 if left[m, b] >= least and other >= least else 0.0
            for q in range(m):
                total = left[q, n_bins - 1]
                before = total * total / (whole + ridge)
                for b in range(n_bins):
                    one, two = left[q, b], total - left[q, b]
                    gain = one * one / (left[m, b] + ridge)
                    gain += two * two / (whole - left[m, b] + ridge)
                    gains[b] += enough[b] * (gain - before)
        for b in range(n_bins - 1):
            if gains[b] > most:
                most, where, after = gains[b], j, b
    return most, where, after


@kernel
def cut_cells(cells, column, after):
    """Divide all cells: what is in a bin above goes to the second half."""
    for i in range(len(cells)):
        cells[i] = 2 * cells[i] + (column[i] > after)


@kernel
def cut_along(bins, columns, rows, shares, cells, first, last, n_bins, least, ridge, inputs, cuts):  # type: ignore[no-untyped-def]
    """Cut all cells along some more axes of a grid, from the first to before the last, each at the
    input and after the bin of `best_cut`; after all bins where nothing is gained."""
    for axis in range(first, last):
        gain, j, after = best_cut(
            bins, columns, rows, shares, cells, 1 << axis, n_bins, least, ridge
        )
        if gain == 0.0:
            j, after = columns[0], n_bins
        cut_cells(cells, bins[j], after)
        inputs[axis], cuts[axis] = j, after


@kernel
def cell_means(cells, residuals, weights, ridge, out):
    """Weighted mean residual of every cell, shrunk by a ridge."""
    totals = np.zeros(len(out))
    out[:] = 0.0
    for i in range(len(cells)):
        totals[cells[i]] += weights[i]
        for s in range(out.shape[1]):
            out[cells[i], s] += weights[i] * residuals[i, s]
    for c in range(len(out)):
        for s in range(out.shape[1]):
            out[c, s] /= totals[c] + ridge


@kernel
def grid_sums(Z, inputs, cuts, values, out):
    """Add to each row the values of its cells.

    A grid has a row of ``inputs`` and of ``cuts``, and ``values`` (grids, cells, outputs).
    """
    n, d = Z.shape
    block = np.empty((d, _ROWS))
    cells = np.empty(_ROWS, dtype=np.int32)
    for first in range(0, n, _ROWS):
        m = min(_ROWS, n - first)
        for j in range(d):
            for r in range(m):
                block[j, r] = Z[first + r, j]
        for t in range(len(inputs)):
            cells[:] = 0
            for a in range(inputs.shape[1]):
                column, cut = block[inputs[t, a]], cuts[t, a]
                for r in range(m):
                    cells[r] = 2 * cells[r] + np.int32(column[r] > cut)
            for r in range(m):
                for s in range(out.shape[1]):
                    out[first + r, s] += values[t, cells[r], s]
