"""The compiled functions agree with NumPy at all sizes that their unrolled loops treat apart."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from losse._kernels.accumulate import add_packed, add_square
from losse._kernels.blas import solve_lower
from losse._kernels.block_update import rows_times
from losse._kernels.cascade import UNITS, stage_outputs
from losse._kernels.encode import project, project_rows
from losse._kernels.inverse import dot_rows, mirror, quadratic_rows
from losse._kernels.listed import add_product_of_rows, combine_rows
from losse._kernels.packed import packed_block, packed_rows_times, packed_times, packed_to_square
from losse._kernels.predict import weighted_rows
from losse._kernels.simd import LINE, aligned, padded
from losse._kernels.small_solve import factor_and_solve
from losse.encoders import LosseEncoder

SIZES = st.integers(1, 40)


def lines(rng, rows, columns, dtype=np.float64):
    out = aligned((rows, padded(columns, dtype)), dtype)
    out[:, :columns] = rng.normal(size=(rows, columns))
    return out


def sparse_rows(rng, n, dimension, active):
    indices = np.array([np.sort(rng.choice(dimension, active, replace=False)) for _ in range(n)])
    values = rng.normal(size=(n, active))
    Phi = np.zeros((n, dimension))
    np.put_along_axis(Phi, indices, values, axis=1)
    return indices.astype(np.int32), values, Phi


@given(K=SIZES, S=SIZES, seed=st.integers(0, 99))
def test_factor_and_solve(K, S, seed):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(K, K + 3))
    around = aligned((K + 1, padded(K) + padded(S))), aligned((K + 1, padded(S)))
    M, X = (whole[:K] for whole in around)
    M[:, :K] = G @ G.T + 0.1 * np.eye(K)
    M[:, padded(K) :] = R = lines(rng, K, S)
    expected = np.linalg.solve(M[:, :K], R)
    assert factor_and_solve(M, K, X)
    np.testing.assert_allclose(X, expected, atol=1e-8 * np.abs(expected).max())
    assert not any(whole[K].any() for whole in around), "wrote behind the last row"


def test_factor_and_solve_reports_an_indefinite_matrix():
    M = aligned((3, 16))
    M[:, :3] = np.diag([1.0, -1.0, 1.0])
    assert not factor_and_solve(M, 3, aligned((3, 8)))


@given(n=SIZES, D=SIZES, S=SIZES, seed=st.integers(0, 99), single=st.booleans())
def test_rows_times(n, D, S, seed, single):
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    A, W = rng.normal(size=(D, D + 3)).astype(dtype)[:, :D], lines(rng, D, S, dtype)
    rows = rng.integers(0, D, size=n)
    out = aligned((n, W.shape[1]), dtype)
    rows_times(A, rows, n, W, out)
    np.testing.assert_allclose(out, A[rows] @ W, atol=1e-3 if single else 1e-11)


@given(n=SIZES, K=st.integers(1, 12), S=SIZES, seed=st.integers(0, 99))
def test_weighted_rows(n, K, S, seed):
    rng = np.random.default_rng(seed)
    indices, values, Phi = sparse_rows(rng, n, 15, K)
    W = lines(rng, 15, S)
    out = aligned((n, W.shape[1]))
    weighted_rows(indices, values, W, out)
    np.testing.assert_allclose(out, Phi @ W, atol=1e-12)


@given(n=SIZES, D=st.integers(8, 90), seed=st.integers(0, 99))
def test_combine_and_dot_rows(n, D, seed):
    rng = np.random.default_rng(seed)
    indices, values, Phi = sparse_rows(rng, n, D, 5)
    P = lines(rng, D, D)
    out = aligned((n, P.shape[1]))
    combine_rows(indices, values, P, out)
    np.testing.assert_allclose(out, Phi @ P, atol=1e-12)
    inner = np.empty((n, D))
    dot_rows(indices, values, P, inner)
    np.testing.assert_allclose(inner, Phi @ P[:, :D].T, atol=1e-12)


@given(
    n=SIZES, D=st.integers(1, 700), share=st.sampled_from([0.0, 0.1, 0.3]), seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_products_of_rows_with_zeros(n, D, share, seed, dtype):
    """Whatever the share of zeros, and in a part of a larger array: nothing else is written."""
    rng = np.random.default_rng(seed)
    T = aligned((n, D), dtype)
    T[:] = np.where(rng.random((n, D)) < share, rng.normal(size=(n, D)), 0.0)
    first, last = np.sort(rng.integers(0, D + 1, size=2))
    M = rng.normal(size=(D, D)).astype(dtype)
    expected = M.astype(float)
    expected[first:last, first:] -= T[:, first:last].T.astype(float) @ T[:, first:]
    add_product_of_rows(T[:, first:last], T[:, first:], M[first:last, first:], -1.0)
    np.testing.assert_allclose(M, expected, atol=1e-12 if dtype is np.float64 else 1e-4)


@given(F=st.integers(1, 9), axes=st.integers(1, 80), seed=st.integers(0, 99))
def test_project(F, axes, seed):
    rng = np.random.default_rng(seed)
    X, P = rng.normal(scale=10, size=(7, F)), lines(rng, F, axes)
    shift, scale = rng.normal(size=F), rng.uniform(0.1, 3, size=F)
    out = aligned((7, P.shape[1]))
    h = np.clip((X - shift) * scale, -3, 3) @ P
    project(X, shift, scale, 3.0, P, out)
    np.testing.assert_allclose(out, h, atol=1e-12)
    project_rows(X, 0, 7, shift, scale, 3.0, P, True, np.empty((7, F)), out)
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-h)), rtol=1e-14)


@given(n=SIZES, F=SIZES, S=SIZES, seed=st.integers(0, 99), far=st.sampled_from([0.1, 1.0, 100.0]))
def test_stage_outputs(n, F, S, seed, far):
    rng = np.random.default_rng(seed)
    P, W = lines(rng, F, 2 * UNITS, np.float32), lines(rng, 2 * UNITS, S, np.float32)
    P /= np.float32(np.sqrt(F))
    offsets, affine = rng.normal(size=2 * UNITS).astype(np.float32), lines(rng, F, S, np.float32)
    constant = rng.normal(size=S)
    X, out = far * rng.normal(size=(n, F)), np.empty((n, S))
    h = 3 * np.tanh(X @ P) + offsets
    expected = (h * (1 + np.tanh(h)) / 2) @ W[:, :S] + X @ affine[:, :S] + constant
    stage_outputs(X, P, offsets, W, affine, constant, out)
    np.testing.assert_allclose(out, expected, atol=2e-6 * (1 + far) * 2 * UNITS)
    alone = np.empty((1, S))
    stage_outputs(X[n // 2 : n // 2 + 1], P, offsets, W, affine, constant, alone)
    np.testing.assert_array_equal(alone[0], out[n // 2])


def test_stage_outputs_are_finite_however_far_an_input_lies():
    P, W = aligned((2, UNITS), np.float32), aligned((UNITS, 16), np.float32)
    P[:], W[:] = [[1.0], [-1.0]], 1.0
    out = np.empty((1, 1))
    X = np.array([[1e300, 1e300]])
    zeros, affine = np.zeros(UNITS, np.float32), aligned((2, 16), np.float32)
    stage_outputs(X, P, zeros, W, affine, np.zeros(1), out)
    assert np.isfinite(out).all()


@pytest.mark.parametrize(("grids", "bins", "dim"), [(4, 3, 2), (5, 4, 1), (3, 2, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_outputs", [1, 12, 33])
def test_packed_memory_holds_what_a_square_one_does(grids, bins, dim, dtype, n_outputs):
    rng = np.random.default_rng(0)
    encoder = LosseEncoder(grids, bins, dim)
    features = encoder.fit(rng.normal(size=(50, 3))).encode(rng.normal(size=(50, 3)))
    size, D = encoder.cells_per_grid, encoder.dimension
    weights = rng.uniform(size=50)
    A, square = np.zeros((grids * (grids + 1) // 2, size, size), dtype), np.zeros((D, D), dtype)
    add_packed(A, size, features.indices, features.values, weights, 0, grids)
    K = features.indices.shape[1]
    add_square(square, features.indices, features.values, weights, 0, K, upper=False)
    Phi = features.matrix().toarray()
    exact = (Phi * weights[:, None]).T @ Phi
    atol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(square, exact, atol=atol)
    unpacked = np.empty((D, D))
    packed_to_square(A, size, unpacked)
    np.testing.assert_allclose(unpacked, exact, atol=atol)
    W = lines(rng, D, n_outputs, dtype)
    out = aligned(W.shape, dtype)
    packed_times(A, size, W, out)
    np.testing.assert_allclose(out, exact @ W, atol=100 * atol)
    cells = features.indices[0]
    block = np.empty((len(cells), len(cells)))
    packed_block(A, size, cells, block)
    np.testing.assert_allclose(block, exact[np.ix_(cells, cells)], atol=atol)
    rows = aligned((len(cells), W.shape[1]), dtype)
    packed_rows_times(A, size, cells, W, rows)
    np.testing.assert_allclose(rows, (exact @ W)[cells], atol=100 * atol)


@given(n=SIZES, m=SIZES, extra=st.integers(0, 5), transposed=st.booleans())
def test_solve_lower_inside_a_larger_array(n, m, extra, transposed):
    rng = np.random.default_rng(n)
    L = np.tril(rng.normal(size=(n + extra, n + extra)) / (n + extra))
    L += 2 * np.eye(n + extra)
    L = L[:n, :n]
    B = rng.normal(size=(n, m))
    X = B.copy()
    solve_lower(L, X, transposed=transposed)
    np.testing.assert_allclose((L.T if transposed else L) @ X, B, atol=1e-10)


def test_mirror():
    A = np.random.default_rng(0).normal(size=(130, 130))
    expected = np.triu(A) + np.triu(A, 1).T
    mirror(A)
    np.testing.assert_array_equal(A, expected)


def test_large_arrays_start_on_a_cache_line():
    for dtype in (np.float32, np.float64):
        assert aligned((100, 16), dtype).ctypes.data % LINE == 0


MIRROR = (
    "import numpy as np; from losse._kernels.inverse import mirror;"
    "A = np.arange(9.0).reshape(3, 3); mirror(A); print(A.tolist())"
)


def test_works_without_a_writable_cache():
    nowhere = "import numba.core.caching as c; c.CacheImpl._locator_classes = [];"
    env = {**os.environ, "NUMBA_CACHE_DIR": os.devnull + "/none"}
    options = {"env": env, "capture_output": True, "text": True, "check": True}
    outputs = {
        subprocess.run([sys.executable, "-c", code], **options).stdout
        for code in (MIRROR, nowhere + MIRROR)
    }
    assert len(outputs) == 1
    assert "[" in outputs.pop()


@pytest.mark.parametrize("K", [1, 2, 8, 13, 27, 40])
@pytest.mark.parametrize("pairs", [False, True])
def test_quadratic_forms(K, pairs):
    """With active cells side by side, as in two-dimensional grids, or anywhere."""
    rng = np.random.default_rng(K)
    D = 3 * K + 1
    indices = np.empty((5, K), dtype=np.int32)
    for row in indices:
        if pairs:
            starts = 2 * np.sort(rng.choice(D // 2, -(-K // 2), replace=False))
            row[:] = np.stack([starts, starts + 1], axis=1).ravel()[:K]
        else:
            row[:] = rng.choice(D, K, replace=False)
    values, P = rng.normal(size=(5, K)), aligned((D, padded(D)))
    P[:, :D] = rng.normal(size=(D, D))
    P[:, :D] += P[:, :D].T.copy()
    Phi = np.zeros((5, D))
    np.put_along_axis(Phi, indices.astype(np.int64), values, axis=1)
    out = np.empty(5)
    quadratic_rows(indices, values, P, out)
    np.testing.assert_allclose(out, np.einsum("ri,ij,rj->r", Phi, P[:, :D], Phi), atol=1e-11)
