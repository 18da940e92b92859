"""Algorithm 2 as a function that XLA calls on a CPU, with arrays that it lends.

XLA passes the address of a call frame, laid out as its header ``xla/ffi/api/c_api.h`` says, which
is read here word by word; `LAYOUT` is the part of the header that this relies on. The arrays in it
are those of a model in one precision, without padding. The kernels want rows of whole cache lines,
and doubles for everything but A: what they work on is copied there and back. Further axes, before
those of one model, are of as many models.

The arguments are A, B, W, squares and total, the ridge, and the cells, values, targets and weights
of rows. The results are the first five as they are afterwards, commonly in the same place.
"""

from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from losse._kernels.block_update import AT_ONCE, rows_times
from losse._kernels.jit import callback, kernel
from losse._kernels.simd import LANES, LINE, aligned_rows
from losse._kernels.small_solve import factor_and_solve

LAYOUT = {
    "XLA_FFI_CallFrame": "struct_size extension_start api ctx stage args rets attrs",
    "XLA_FFI_Args": "struct_size extension_start size types args",
    "XLA_FFI_Rets": "struct_size extension_start size types rets",
    "XLA_FFI_Buffer": "struct_size extension_start dtype data rank dims",
    "XLA_FFI_Extension_Base": "struct_size type next",
    "XLA_FFI_Metadata_Extension": "extension_base metadata",
    "XLA_FFI_Api_Version": "struct_size extension_start major_version minor_version",
    "XLA_FFI_Metadata": "struct_size api_version traits",
}
"""First fields of structures, in their order: more may follow, but none may come between."""
SIGNATURE = types.intp(types.CPointer(types.intp))
INTERFACE = 0 + (1 << 32)
"""Version of XLA's foreign function interface that has these frames, 0.1, as a word."""
QUESTION, ARGUMENTS, RESULTS = 1, 9, 14
"""Words of a frame: extensions, and the addresses of the arguments and of the results."""
DATA, RANK, SHAPE = 3, 4, 5
"""Words of an argument or a result."""
KIND, NEXT, METADATA, VERSION = 1, 2, 3, 3
"""Words of an extension, the last of which leads to metadata, and their word for the version."""
MOST_ATTEMPTS = 20
"""Times that the penalty of a system is raised tenfold, before its weights are left alone."""
ASKS_VERSION = 1
"""Kind of the extension by which XLA asks for the version instead of calling."""


def square_learner(dtype: str) -> Any:
    """Compile the function for a square A in one precision; it has an ``address`` for XLA."""
    real = np.dtype(dtype).type

    @callback(SIGNATURE)
    def run(frame):  # type: ignore[no-untyped-def]
        if not _answered(frame):
            A, B, W, squares, total, ridge, cells, phi, Y, weights = _arguments(frame, real)
            for m in range(len(A)):
                rows = _counted(cells[m], phi[m], Y[m], weights[m])
                learn_square(A[m], B[m], W[m], squares[m], total[m], ridge[m], *rows)
        return 0

    return run


@kernel
def learn_square(A, B, W, squares, total, ridge, cells, phi, Y, weights):  # type: ignore[no-untyped-def]
    """Learn rows into a square A.

    The active weights are solved for from nothing, (A_ss + lambda I) W_s = B_s - A_ss' W_s', since
    steps from their single-precision values can add up to ever larger ones.
    """
    (n, K), S, lines = cells.shape, W.shape[1], Y.shape[1]
    others = _in_lines(W)
    product = np.zeros((AT_ONCE, others.shape[1]), W.dtype)
    block, right = np.empty((K, K)), np.zeros((K, lines))
    system, solved = _system(K, lines), aligned_rows(K, lines)
    first = system.shape[1] - lines
    smallest = np.finfo(W.dtype).eps
    for r in range(n):
        s, w = cells[r], weights[r]
        total[0] += w
        for j in range(S):
            squares[j] += w * Y[r, j] * Y[r, j]
        for i in s:
            others[i] = 0.0
        for m in range(0, K, AT_ONCE):  # a row of A is used twice while it is in cache
            last = min(m + AT_ONCE, K)
            rows_times(A, s[m:last], last - m, others, product)
            for k in range(m, last):
                row, x = A[s[k]], w * phi[r, k]
                for j in range(S):
                    B[s[k], j] += x * Y[r, j]
                    right[k, j] = B[s[k], j] - product[k - m, j]
                for q in range(K):
                    row[s[q]] += x * phi[r, q]
                    block[k, q] = row[s[q]]
        trace = 0.0
        for k in range(K):
            trace += block[k, k]
        penalty = max(np.float64(ridge[0]) * total[0], smallest * trace)
        for _ in range(MOST_ATTEMPTS):
            system[:, :K] = block
            system[:, first:] = right
            for k in range(K):
                system[k, k] += penalty
            if factor_and_solve(system, K, solved):
                for k in range(K):
                    for j in range(S):
                        W[s[k], j] = solved[k, j]
                break
            penalty *= 10.0
        for i in s:
            for j in range(S):
                others[i, j] = W[i, j]


@kernel
def _counted(cells, phi, Y, weights):  # type: ignore[no-untyped-def]
    """Rows of positive weight, in doubles and with targets in whole lines."""
    counted = np.nonzero(weights > 0)[0]
    targets = aligned_rows(len(counted), -(-Y.shape[1] // LANES) * LANES)
    targets[:] = 0.0
    targets[:, : Y.shape[1]] = Y[counted]
    values = phi[counted].astype(np.float64)
    return cells[counted], values, targets, weights[counted].astype(np.float64)


@kernel
def _in_lines(W):  # type: ignore[no-untyped-def]
    """W with rows padded to whole lines."""
    D, S = W.shape
    lanes = LINE // W.itemsize
    width = -(-S // lanes) * lanes
    raw = np.zeros(D * width + lanes, W.dtype)
    first = -np.int64(raw.ctypes.data) % LINE // W.itemsize
    padded = raw[first : first + D * width].reshape((D, width))
    padded[:, :S] = W
    return padded


@kernel
def _system(K, lines):  # type: ignore[no-untyped-def]
    """Space for a block of A and right-hand sides beside it."""
    system = aligned_rows(K, -(-K // LANES) * LANES + lines)
    system[:] = 0.0
    return system


@intrinsic
def _pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """A number as an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


@kernel
def _words(address):  # type: ignore[no-untyped-def]
    """Words at an address."""
    return carray(_pointer(address), (16,), np.int64)


@kernel
def _answered(frame):  # type: ignore[no-untyped-def]
    """Whether XLA has asked for the version instead of calling, and got an answer."""
    extension = carray(frame, (16,))[QUESTION]
    while extension != 0:
        words = _words(extension)
        if words[KIND] & 0xFFFFFFFF == ASKS_VERSION:
            _words(words[METADATA])[VERSION] = INTERFACE
            return True
        extension = words[NEXT]
    return False


@kernel
def _arguments(frame, real):  # type: ignore[no-untyped-def]
    """All arguments as arrays, whose first axis is that of models; what changes, as results."""
    words = carray(frame, (16,))
    given, out = _words(words[ARGUMENTS]), _words(words[RESULTS])
    models, D, S = _lengths(given[1])
    _, n, K = _lengths(given[6])
    return (
        _result(given[0], out[0], (models, D, D), real),
        _result(given[1], out[1], (models, D, S), real),
        _result(given[2], out[2], (models, D, S), real),
        _result(given[3], out[3], (models, S), real),
        _result(given[4], out[4], (models, 1), real),
        _array(given[5], (models, 1), real),
        _array(given[6], (models, n, K), np.int32),
        _array(given[7], (models, n, K), real),
        _array(given[8], (models, n, S), real),
        _array(given[9], (models, n), real),
    )


@kernel
def _result(argument, result, shape, dtype):  # type: ignore[no-untyped-def]
    """A result as an array that begins as an argument is: the same, unless XLA has copied it."""
    array = _array(result, shape, dtype)
    if _words(result)[DATA] != _words(argument)[DATA]:
        array[:] = _array(argument, shape, dtype)
    return array


@kernel
def _array(argument, shape, dtype):  # type: ignore[no-untyped-def]
    """An argument as an array."""
    return carray(_pointer(_words(argument)[DATA]), shape, dtype)


@kernel
def _lengths(argument):  # type: ignore[no-untyped-def]
    """Product of the lengths of all axes of an argument before the last two, and of these."""
    buffer = _words(argument)
    rank, lengths = buffer[RANK], _words(buffer[SHAPE])
    before = 1
    for axis in range(rank - 2):
        before *= lengths[axis]
    return before, lengths[rank - 2], lengths[rank - 1]
