"""Triangular solves inside a larger array, through the pointer that SciPy exports.

SciPy's own wrapper copies a matrix that is part of a larger one; a factor that grows row by row
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
def _trsm_address() -> int:
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dtrsm"))


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
        _trsm(_trsm_address(), L, X, transposed)
