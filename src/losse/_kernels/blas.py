"""Products and triangular solves inside larger arrays, through the pointers that SciPy exports.

SciPy's own wrappers copy a matrix that is part of a larger one; a factor that grows row by row
would be copied with every batch. The address is an argument, not a global, because a kernel
that closes over a pointer cannot be cached on disk.
"""

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from losse._kernels.jit import kernel


@functools.cache
def _address(routine: str) -> int:
    return int(get_cython_function_address("scipy.linalg.cython_blas", routine))


@intrinsic
def _call(typingctx, routine, arguments):  # type: ignore[no-untyped-def]
    """Call the Fortran ``routine`` (an address) with a tuple of pointers."""

    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        function, pointers = values
        pointer = ir.IntType(8).as_pointer()
        prototype = ir.FunctionType(ir.VoidType(), [pointer] * signature.args[1].count)
        target = builder.inttoptr(function, prototype.as_pointer())
        unpacked = cgutils.unpack_tuple(builder, pointers)
        builder.call(target, [builder.inttoptr(p, pointer) for p in unpacked])
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


@kernel
def _trsm(routine, L, X, transposed):  # type: ignore[no-untyped-def]
    # A row-major matrix is its transpose in Fortran's eyes: L X = B there reads X^T L^T = B^T,
    # with the upper triangular L^T on the right.
    letters = np.array([82, 85, 84 if transposed else 78, 78], dtype=np.uint8)  # R U T|N N
    sizes = np.array([X.shape[1], X.shape[0], L.strides[0] // 8, X.strides[0] // 8], dtype=np.int32)
    one = np.ones(1)
    flag, size = letters.ctypes.data, sizes.ctypes.data
    _call(
        routine,
        (
            flag, flag + 1, flag + 2, flag + 3, size, size + 4,
            one.ctypes.data, L.ctypes.data, size + 8, X.ctypes.data, size + 12,
        ),
    )  # fmt: skip
    return letters[0] + sizes[0] + one[0]  # keeps the arrays alive until the call is over


def solve_lower(L: Any, X: Any, *, transposed: bool = False) -> None:
    """Solve L x = X (or L^T x = X) in place; both may be parts of larger row-major arrays.

    >>> L, X = np.tril(np.ones((5, 5)))[:3, :3], np.array([[1.0], [2.0], [3.0]])
    >>> solve_lower(L, X)
    >>> X.ravel()
    array([1., 1., 1.])
    """
    if len(X):
        assert L.strides[1] == X.strides[1] == 8, "rows must be contiguous doubles"
        _trsm(_address("dtrsm"), L, X, transposed)


@kernel
def _gemm(routine, left, right, out, factor):  # type: ignore[no-untyped-def]
    # In Fortran's eyes: out^T += right^T left.
    letters = np.array([78, 84], dtype=np.uint8)  # N T
    sizes = np.array(
        [
            out.shape[1], out.shape[0], left.shape[0],
            right.strides[0] // 8, left.strides[0] // 8, out.strides[0] // 8,
        ],
        dtype=np.int32,
    )  # fmt: skip
    factors = np.array([factor, 1.0])
    flag, size, number = letters.ctypes.data, sizes.ctypes.data, factors.ctypes.data
    _call(
        routine,
        (
            flag, flag + 1, size, size + 4, size + 8, number, right.ctypes.data, size + 12,
            left.ctypes.data, size + 16, number + 8, out.ctypes.data, size + 20,
        ),
    )  # fmt: skip
    return letters[0] + sizes[0] + factors[0]


def add_product(left: Any, right: Any, out: Any, factor: float = 1.0) -> None:
    """Add factor left^T right to ``out``; all may be parts of larger row-major arrays.

    >>> out = np.zeros((3, 4))
    >>> add_product(np.ones((5, 2)), np.ones((5, 2)), out[1:, :2], -1.0)
    >>> out[1]
    array([-5., -5.,  0.,  0.])
    """
    if not (left.size and right.size):
        return
    if not (left.dtype == out.dtype == np.float64):
        out += factor * (left.T @ right)
        return
    assert left.strides[1] == right.strides[1] == out.strides[1] == 8, "rows must be contiguous"
    _gemm(_address("dgemm"), left, right, out, float(factor))
