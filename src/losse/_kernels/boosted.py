"""Grids with two bins along each axis: where to cut, and what a sum of such grids predicts."""

import numpy as np

from losse._kernels.jit import kernel

_ROWS = 64


@kernel
def best_cut(bins, inputs, shares, cells, n_cells, n_bins, least, ridge):
    """Which of some inputs to cut all cells at, and after which bin: the gain, the input, the bin.

    ``bins`` is (all inputs, n). ``shares`` (n, outputs + 1) has the weighted residuals of each row
    and its weight. The gain is by how much the squared error falls; both sides of a cell must have
    the least weight, else the cell gains nothing.
    """
    n = len(cells)
    m = shares.shape[1] - 1
    sums = np.empty((n_cells, n_bins, m + 1))
    gains = np.empty(n_bins)
    left = np.empty(m + 1)
    whole = np.empty(m + 1)
    most, where, after = 0.0, -1, 0
    for j in inputs:
        sums[:] = 0.0
        for i in range(n):
            c, b = cells[i], bins[j, i]
            for q in range(m + 1):
                sums[c, b, q] += shares[i, q]
        gains[:] = 0.0
        for c in range(n_cells):
            whole[:] = 0.0
            for b in range(n_bins):
                for q in range(m + 1):
                    whole[q] += sums[c, b, q]
            before = 0.0
            for q in range(m):
                before += whole[q] * whole[q] / (whole[m] + ridge)
            left[:] = 0.0
            for b in range(n_bins - 1):
                for q in range(m + 1):
                    left[q] += sums[c, b, q]
                right = whole[m] - left[m]
                if left[m] >= least and right >= least:
                    gain = -before
                    for q in range(m):
                        other = whole[q] - left[q]
                        gain += left[q] * left[q] / (left[m] + ridge)
                        gain += other * other / (right + ridge)
                    gains[b] += gain
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
