"""Ridge regression with its predictions of rows left out, as work in units.

The residuals of a row under the fit of all others follow in closed form from one factor. Products
of features are made in the precision of these, which may be single; sums of many are doubles.
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, get_blas_funcs
from scipy.linalg.blas import dtrsm

from losse._kernels.blas import add_product
from losse.typing import Array
from losse.work import Work, blocks, finished

Features = npt.NDArray[np.floating]

LARGEST_RIDGE = 100.0
"""If the largest of some ridges is the best, ten times as much is tried, up to this."""
JUDGES = 300
"""Rows left out that choose a ridge, at least."""
# Rows whose products are summed in single precision, at least, and as many more would take as long
# as to add these to others.
_SUMMED, _ADDED = 256, 64
# Columns of a Cholesky factor that are made at once, and products in the time for opening one.
_BLOCK, _OPENED = 64, 300.0
# Operations that take as long as changing the precision of a number.
_CONVERTED = 150.0


def _factoring(A: Array, ridge: float) -> Work[Array]:
    """Lower Cholesky factor of A + ridge I, of A's lower triangle, as work in units.

    Where rounding forbids it, the ridge becomes larger.
    """
    n, diagonal = len(A), A.diagonal()
    while ridge < np.inf:
        M = np.zeros((n, n), order="F")
        try:
            for first in range(0, n, _BLOCK):
                last = min(first + _BLOCK, n)
                known, block = M.T[:first], M[first:, first:last]
                block[:] = A[first:, first:last]
                np.einsum("ii->i", block[: last - first])[:] += ridge
                add_product(known[:, first:last], known[:, first:], block.T, -1.0)
                L = cholesky(block[: last - first], lower=True, check_finite=False)
                block[: last - first] = L
                below = dtrsm(1.0, L, block[last - first :], side=1, lower=1, trans_a=1)
                block[last - first :] = below
                yield (last - first) * (n - first) * (2.0 * first + _OPENED)
            return M
        except LinAlgError:  # inputs that are large and not scaled
            ridge = max(10 * ridge, 1e-15 * float(diagonal.max()))
    raise LinAlgError("inputs or targets are too large to build an encoder: scale them down.")


def ridge_fit(F: Features, Q: Array, ridges: tuple[float, ...]) -> Work["Primal | Dual"]:
    """The best of some ridge regressions, by the errors of some rows under all others' fit."""
    n, D = F.shape
    kind = Primal if n >= D else Dual
    system = yield from kind.system(F)
    right = (yield from _times(F, Q)) if n >= D else Q
    judges = slice(None, None, max(1, n // JUDGES))
    best, least = None, np.inf
    tried = list(ridges)
    for ridge in tried:
        L = yield from _factoring(system, ridge * n)
        fit = kind(F, Q, L, cho_solve((L, True), right, check_finite=False))
        yield 8.0 * len(L) ** 2 * Q.shape[1]
        error = 0.0
        if len(ridges) > 1:
            residual = yield from fit.residuals(judges)
            error = float((residual**2).sum())
        if best is None or error < least:
            best, least = fit, error
            if len(ridges) > 1 and ridge == tried[-1] < LARGEST_RIDGE:
                tried.append(10.0 * ridge)
    assert best is not None
    return best


class Primal:
    """Ridge regression with one unknown per feature: L L^T = F^T F + lambda I."""

    def __init__(self, F: Features, Q: Array, L: Array, W: Array) -> None:
        self._F, self._Q, self._L = F, Q, L
        self.W = W

    @staticmethod
    def system(F: Features) -> Work[Array]:
        """F^T F, its lower triangle."""
        n, D = F.shape
        A, syrk = np.zeros((D, D), order="F"), get_blas_funcs("syrk", (F,))
        for part in blocks(n, 0.5 * D * D, _SUMMED):
            A += syrk(1.0, F[part].T, lower=1)
            yield (part.stop - part.start + _ADDED) * 0.5 * D * D
        return A

    def residuals(self, which: slice) -> Work[Array]:
        """Residuals of some rows under the fit of all others."""
        F, Q = self._F[which], self._Q[which]
        n, D = F.shape
        L, divide, cost = self._L, "trsm", D * (D + 4.0 * Q.shape[1])
        if n > D:  # so that an inverse is worth its making
            L, divide = (yield from _inverse(L)), "trmm"
            cost = D * (0.5 * D + 4.0 * Q.shape[1])
        apply, L, out = get_blas_funcs(divide, (F,)), L.astype(F.dtype), np.empty(Q.shape)
        for part in blocks(n, cost):
            half = apply(1.0, L, F[part].T, lower=1)
            rest = 1.0 - np.einsum("dn,dn->n", half, half)
            residual = Q[part] - F[part].astype(float) @ self.W
            out[part] = residual / np.maximum(rest, 1e-6)[:, None]
            yield (part.stop - part.start) * cost
        return out


class Dual:
    """Ridge regression with one unknown per row: L L^T = F F^T + lambda I."""

    def __init__(self, F: Features, Q: Array, L: Array, dual: Array) -> None:
        self._L, self._dual = L, dual
        self._diagonal: Array | None = None
        self.W = finished(_times(F, dual))

    @staticmethod
    def system(F: Features) -> Work[Array]:
        """F F^T, its lower triangle, of rows that are few."""
        n, D = F.shape
        F = F.astype(float)
        A = np.zeros((n, n), order="F")
        for part in blocks(n, 2.0 * D * n):
            A[part, : part.stop] = F[part] @ F[: part.stop].T
            yield 2.0 * D * (part.stop - part.start) * part.stop
        return A

    def residuals(self, which: slice) -> Work[Array]:
        """Residuals of some rows under the fit of all others."""
        if self._diagonal is None:
            # of (L L^T)^-1
            inverse = yield from _inverse(self._L)
            self._diagonal = np.einsum("ij,ij->j", inverse, inverse)
        return np.asarray(self._dual[which] / self._diagonal[which, None])


def _times(F: Features, Y: Array) -> Work[Array]:
    """F^T Y, in double precision."""
    D, S = F.shape[1], Y.shape[1]
    total, cost = np.zeros((D, S)), D * (2.0 * S + _CONVERTED)
    for part in blocks(len(F), cost, _SUMMED):
        total += F[part].astype(float).T @ Y[part]
        yield (part.stop - part.start) * cost
    return total


def _inverse(L: Array) -> Work[Array]:
    """L^-1, which is zero above the diagonal."""
    n = len(L)
    inverse = np.zeros((n, n), order="F")
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        columns = np.eye(n - first, last - first, order="F")
        inverse[first:, first:last] = dtrsm(1.0, L[first:, first:], columns, lower=1, overwrite_b=1)
        yield 1.5 * _BLOCK * (n - first) ** 2
    return inverse
