"""A cache line at a time: a vector type for the short loops that the compiler leaves scalar.

A line is 8 doubles or 16 floats; LLVM turns operations on it into the widest instructions that
the processor has. A short inner loop over outputs (S = 12, say) would otherwise spend more on
its own set-up than on arithmetic. Arrays read this way should start on a 64-byte boundary
(`aligned`) and have rows that fill whole lines (`padded`): a load that straddles two costs twice.
"""

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from losse._kernels.jit import kernel

LINE = 64
"""Bytes in a cache line."""
LANES = LINE // 8
"""Doubles in a line."""
LARGE, HUGE = 1 << 22, 1 << 28
"""Bytes from which an array has small pages, and from which it does not, for the sake of reads."""


def padded(length: int, dtype: npt.DTypeLike = np.float64) -> int:
    """The length rounded up to whole lines.

    >>> padded(12), padded(12, "float32")
    (16, 16)
    """
    lanes = LINE // np.dtype(dtype).itemsize
    return -(-length // lanes) * lanes


def aligned(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Zeros that start on a 64-byte boundary, unless they are too few for that to matter.

    The system provides pages only as they are written. For large arrays NumPy would ask for pages
    of two megabytes, of which the first write to each can take many milliseconds.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape)
    if size < 256:
        return np.zeros(shape, dtype)
    if LARGE <= size * dtype.itemsize < HUGE and hasattr(mmap, "MAP_PRIVATE"):
        pages = mmap.mmap(-1, size * dtype.itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return np.frombuffer(pages, dtype).reshape(shape)
    raw = np.zeros(size + LINE // dtype.itemsize, dtype)
    first = -raw.ctypes.data % LINE // dtype.itemsize
    return raw[first : first + size].reshape(shape)


@kernel
def aligned_rows(rows, columns):  # type: ignore[no-untyped-def]
    """The same inside a kernel, for doubles and without the zeros."""
    raw = np.empty(rows * columns + LANES)
    first = -np.int64(raw.ctypes.data) % LINE // 8
    return raw[first : first + rows * columns].reshape(rows, columns)


class LineType(types.Type):
    """The Numba type of a line of floats or doubles."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Line({dtype})")


def _vector(dtype: Any) -> Any:
    element = ir.DoubleType() if dtype == types.float64 else ir.FloatType()
    return ir.VectorType(element, LINE * 8 // dtype.bitwidth)


@register_default(LineType)
class _LineModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, _vector(fe_type.dtype))


def broadcast(builder, vector, scalar):  # type: ignore[no-untyped-def]
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)


def _pointer(context, builder, array_type, array, offset):  # type: ignore[no-untyped-def]
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _vector(array_type.dtype).as_pointer())


def call_vector(builder, name, args):  # type: ignore[no-untyped-def]
    vector = args[0].type
    suffix = f"v{vector.count}f{64 if vector.element == ir.DoubleType() else 32}"
    prototype = ir.FunctionType(vector, [vector] * len(args))
    function = cgutils.get_or_insert_function(builder.module, prototype, f"llvm.{name}.{suffix}")
    return builder.call(function, args)


@intrinsic
def splat(typingctx, scalar):  # type: ignore[no-untyped-def]
    """The same number in every lane."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return broadcast(builder, _vector(signature.args[0]), args[0])

    return LineType(scalar)(scalar), codegen


@intrinsic
def load(typingctx, array, offset):  # type: ignore[no-untyped-def]
    """A line of a contiguous array, from a flat element offset."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return LineType(array.dtype)(array, types.int64), codegen


@intrinsic
def store(typingctx, array, offset, value):  # type: ignore[no-untyped-def]
    """Write a line."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen


@intrinsic
def multiply_add(typingctx, left, right, total):  # type: ignore[no-untyped-def]
    """left * right + total, fused."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return call_vector(builder, "fma", args)

    return left(left, left, left), codegen


@intrinsic
def add(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left + right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fadd(*args)

    return left(left, left), codegen


@intrinsic
def divide(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left / right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fdiv(*args)

    return left(left, left), codegen


@intrinsic
def subtract(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left - right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fsub(*args)

    return left(left, left), codegen


@intrinsic
def multiply(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left * right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fmul(*args)

    return left(left, left), codegen


def picked(*lanes: int) -> Any:
    """A function that picks lanes of two lines, numbered through, to make a new one."""

    @intrinsic
    def pick(typingctx, left, right):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
            return builder.shuffle_vector(*args, chosen)

        return left(left, left), codegen

    return pick


@intrinsic
def at_most(typingctx, line, limit):  # type: ignore[no-untyped-def]
    """Each lane, but no more than the limit."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        line, limit = args
        high = broadcast(builder, line.type, limit)
        return builder.select(builder.fcmp_ordered("<", line, high), line, high)

    return line(line, line.dtype), codegen


def _in_order(builder, line, bits, repeats):  # type: ignore[no-untyped-def]
    """Whole numbers of a line as integers, even lanes first, then odd ones; each some times."""
    integers = ir.VectorType(ir.IntType(bits), LANES)
    lanes = [lane for half in (0, 1) for lane in range(half, LANES, 2) for _ in range(repeats)]
    chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    whole = builder.fptosi(line, integers)
    return builder.shuffle_vector(whole, ir.Constant(integers, ir.Undefined), chosen)


def _store_integers(context, builder, array_type, array, offset, numbers):  # type: ignore[no-untyped-def]
    data = context.make_array(array_type)(context, builder, array).data
    pointer = builder.bitcast(builder.gep(data, [offset]), numbers.type.as_pointer())
    builder.store(numbers, pointer, align=array_type.dtype.bitwidth // 8)
    return context.get_dummy_value()


@intrinsic
def store_whole(typingctx, array, offset, line):  # type: ignore[no-untyped-def]
    """Write a line of doubles that are whole numbers to integers: even lanes, then odd ones."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        numbers = _in_order(builder, args[2], array.dtype.bitwidth, 1)
        return _store_integers(context, builder, array, args[0], args[1], numbers)

    return types.void(array, types.int64, line), codegen


@intrinsic
def store_corners(typingctx, array, offset, line, start, size, edges):  # type: ignore[no-untyped-def]
    """Write the numbers of four cells in each of eight grids to integers.

    The line says which cell of its grid is the first, even lanes first, then odd ones. Cells of the
    first grid begin at ``start``, and each has ``size`` cells in rows of ``edges``.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        integer = ir.IntType(array.dtype.bitwidth)
        numbers = _in_order(builder, args[2], integer.width, 4)
        for number, times in (
            (args[3], [1] * 4 * LANES),
            (args[4], [grid for grid in range(LANES) for _ in range(4)]),
            (args[5], [0, 0, 1, 1] * LANES),
        ):
            same = broadcast(builder, numbers.type, builder.trunc(number, integer))
            step = builder.mul(same, ir.Constant(numbers.type, times))
            numbers = builder.add(numbers, step)
        numbers = builder.add(numbers, ir.Constant(numbers.type, [0, 1, 0, 1] * LANES))
        return _store_integers(context, builder, array, args[0], args[1], numbers)

    whole = types.int64
    return types.void(array, whole, line, whole, whole, whole), codegen


@intrinsic
def clamp(typingctx, line, limit):  # type: ignore[no-untyped-def]
    """Each lane held within [-limit, limit]."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        line, limit = args
        high = broadcast(builder, line.type, limit)
        low = builder.fneg(high)
        line = builder.select(builder.fcmp_ordered("<", line, high), line, high)
        return builder.select(builder.fcmp_ordered(">", line, low), line, low)

    return line(line, line.dtype), codegen


@intrinsic
def floor(typingctx, line):  # type: ignore[no-untyped-def]
    """Each lane rounded down."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return call_vector(builder, "floor", args)

    return line(line), codegen


ROUNDING = 1.5 * 2.0**52
"""Added to a double below 2 ** 51 it leaves a sum whose last bits are the nearest whole number."""


@intrinsic
def power_of_two(typingctx, rounded):  # type: ignore[no-untyped-def]
    """2 ** k for doubles k + `ROUNDING` with k in the normal range, by moving the bits."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        integers = ir.VectorType(ir.IntType(64), LANES)
        whole = builder.bitcast(args[0], integers)
        biased = builder.add(whole, ir.Constant(integers, [1023] * LANES))
        bits = builder.shl(biased, ir.Constant(integers, [52] * LANES))
        return builder.bitcast(bits, args[0].type)

    return rounded(rounded), codegen
