"""BLAS and LAPACK inside kernels, through the pointers that SciPy exports.

The address is an argument, not a global: a kernel that closes over a pointer cannot be
cached on disk. Fortran takes everything by reference, so one way of calling serves all.
Unlike SciPy's own wrappers these accept a leading dimension, so that a factor can grow
inside a larger array without being copied.

All matrices here are row-major; a row-major matrix is its transpose in Fortran's eyes, hence
the exchanged sides and triangles below.
"""

import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from losse._kernels.jit import kernel


@functools.cache
def address(name: str) -> int:
    """Address of a double-precision routine, such as ``"dposv"`` or ``"dgemm"``."""
    library = "cython_lapack" if name in {"dposv", "dpotrf", "dpotri", "dpotrs"} else "cython_blas"
    return int(get_cython_function_address(f"scipy.linalg.{library}", name))


@intrinsic
def _call(typingctx, routine, arguments):  # type: ignore[no-untyped-def]
    """Call ``routine`` (an address) with a tuple of pointers."""

    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        function, pointers = values
        pointer = ir.IntType(8).as_pointer()
        count = signature.args[1].count
        prototype = ir.FunctionType(ir.VoidType(), [pointer] * count)
        target = builder.inttoptr(function, prototype.as_pointer())
        builder.call(
            target, [builder.inttoptr(p, pointer) for p in cgutils.unpack_tuple(builder, pointers)]
        )
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


_UPPER = np.frombuffer(b"U", dtype=np.uint8)
_LOWER = np.frombuffer(b"L", dtype=np.uint8)


@kernel
def _integer(value):  # type: ignore[no-untyped-def]
    return np.array([value], dtype=np.int32)


@kernel
def _flag(letter):  # type: ignore[no-untyped-def]
    return np.array([letter], dtype=np.uint8)


@kernel
def cholesky_solve(posv, matrix, rhs):  # type: ignore[no-untyped-def]
    """Solve ``matrix @ x = rhs.T`` in place; both row-major, rhs one row per output.

    Reads the lower triangle of ``matrix`` and overwrites it by its factor. Returns LAPACK's
    info: 0, or the order of the first minor that is not positive definite.
    """
    uplo, n, nrhs = _flag(85), _integer(matrix.shape[0]), _integer(rhs.shape[0])
    lda, ldb = _integer(matrix.strides[0] // 8), _integer(rhs.strides[0] // 8)
    info = _integer(0)
    _call(
        posv,
        (
            uplo.ctypes.data,
            n.ctypes.data,
            nrhs.ctypes.data,
            matrix.ctypes.data,
            lda.ctypes.data,
            rhs.ctypes.data,
            ldb.ctypes.data,
            info.ctypes.data,
        ),
    )
    return info[0]
