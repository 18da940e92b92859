"""Eight doubles at a time: a vector type for the short loops that the compiler leaves scalar.

LLVM turns these operations into the widest instructions that the processor has. A short inner
loop over outputs (S = 12, say) would otherwise spend more on its own set-up than on arithmetic.
Arrays that are read this way should start on a cache line (`aligned`) and have rows of a
multiple of `LANES` (`padded`): a load that straddles two lines costs twice.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

LANES = 8
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)


def padded(length: int) -> int:
    """The next multiple of eight."""
    return -(-length // LANES) * LANES


def aligned(shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Zeros that start on a 64-byte boundary."""
    size = int(np.prod(shape))
    raw = np.zeros(size + LANES)
    first = (-raw.ctypes.data // raw.itemsize) % LANES
    return raw[first : first + size].reshape(shape)


class OctetType(types.Type):
    """The Numba type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="Octet")


octet = OctetType()


@register_default(OctetType)
class _OctetModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, _DOUBLES)


def _splat(builder, scalar):  # type: ignore[no-untyped-def]
    undefined = ir.Constant(_DOUBLES, ir.Undefined)
    vector = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(vector, undefined, lanes)


def _pointer(context, builder, array_type, array, offset):  # type: ignore[no-untyped-def]
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _DOUBLES.as_pointer())


def _llvm(builder, name, args):  # type: ignore[no-untyped-def]
    prototype = ir.FunctionType(_DOUBLES, [_DOUBLES] * len(args))
    name = f"llvm.{name}.v{LANES}f64"
    function = cgutils.get_or_insert_function(builder.module, prototype, name)
    return builder.call(function, args)


@intrinsic
def splat(typingctx, scalar):  # type: ignore[no-untyped-def]
    """The same number eight times."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _splat(builder, args[0])

    return octet(types.float64), codegen


@intrinsic
def load(typingctx, array, offset):  # type: ignore[no-untyped-def]
    """Eight consecutive doubles of a contiguous array, from a flat element offset."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load(pointer, align=8)

    return octet(array, types.int64), codegen


@intrinsic
def store(typingctx, array, offset, value):  # type: ignore[no-untyped-def]
    """Write eight consecutive doubles."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, octet), codegen


@intrinsic
def multiply_add(typingctx, left, right, total):  # type: ignore[no-untyped-def]
    """left * right + total, fused."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _llvm(builder, "fma", args)

    return octet(octet, octet, octet), codegen


@intrinsic
def add(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left + right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fadd(*args)

    return octet(octet, octet), codegen


@intrinsic
def divide(typingctx, left, right):  # type: ignore[no-untyped-def]
    """left / right."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fdiv(*args)

    return octet(octet, octet), codegen


@intrinsic
def clamp(typingctx, vector, limit):  # type: ignore[no-untyped-def]
    """Each lane held within [-limit, limit]."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        vector, limit = args
        high, low = _splat(builder, limit), _splat(builder, builder.fneg(limit))
        vector = builder.select(builder.fcmp_ordered("<", vector, high), vector, high)
        return builder.select(builder.fcmp_ordered(">", vector, low), vector, low)

    return octet(octet, types.float64), codegen


@intrinsic
def floor(typingctx, vector):  # type: ignore[no-untyped-def]
    """Each lane rounded down."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _llvm(builder, "floor", args)

    return octet(octet), codegen


@intrinsic
def power_of_two(typingctx, exponent):  # type: ignore[no-untyped-def]
    """2 ** exponent for whole exponents in the range of normal doubles, by setting its bits."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        whole = builder.fptosi(args[0], _INTEGERS)
        biased = builder.add(whole, ir.Constant(_INTEGERS, [1023] * LANES))
        bits = builder.shl(biased, ir.Constant(_INTEGERS, [52] * LANES))
        return builder.bitcast(bits, _DOUBLES)

    return octet(octet), codegen
