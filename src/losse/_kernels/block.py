"""Products of small blocks that live in registers, as many as the processor has.

Most kernels come down to one loop: sums of some rows and columns, to each of which a number times
a vector is added, step after step. How many sums fit into registers depends on the processor:
AVX-512 has 32 of 64 bytes, AVX2 has 16 of 32, NEON 32 of 16. So the shape of a block is chosen when
the kernels are compiled, and the instructions are written out for it here. Arrays are laid out in
lines of 64 bytes on every machine; see `losse._kernels.simd`.

A tuple stands for a number that must be known to the compiler: its length.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from losse._kernels.simd import LINE, broadcast, call_vector

_PROBE = """
define void @add(ptr %p, ptr %q) {
  %a = load <8 x double>, ptr %p
  %b = load <8 x double>, ptr %q
  %c = fadd <8 x double> %a, %b
  store <8 x double> %c, ptr %p
  ret void
}
"""


def _registers() -> tuple[int, int]:
    """Bytes of a vector register and their number, as Numba's compiler sees the processor."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    assembly = machine.emit_assembly(llvm.parse_assembly(_PROBE))
    for name, size, count in (("zmm", 64, 32), ("ymm", 32, 16), ("xmm", 16, 16)):
        if name in assembly:
            return size, count
    return 16, 32


VECTOR, REGISTERS = _registers()
"""Bytes of a vector register, and how many there are."""
INSTRUCTIONS = {(64, 32): "AVX-512", (32, 16): "AVX2", (16, 16): "SSE", (16, 32): "NEON"}[
    VECTOR, REGISTERS
]
"""Name of the instruction set that kernels are compiled for."""

LINE_OF = (0,) * (LINE // VECTOR)
"""As many vectors as a line has."""
ROWS = (0,) * (8 if VECTOR == LINE else 4)
"""As many rows as give a block of one line enough independent sums, and not too many."""
TALL = (0,) * 6 if (VECTOR, REGISTERS) == (32, 16) else ROWS
"""As many rows as keep both multipliers of AVX2 busy with lines of floats; elsewhere the same."""
WIDE = LINE_OF * (2 if VECTOR == LINE else 1)
"""As many vectors of each of these rows as registers have room for."""


class VectorType(types.Type):
    """The Numba type of a register full of floats or doubles."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


def _vector(dtype: Any) -> Any:
    element = ir.DoubleType() if dtype == types.float64 else ir.FloatType()
    return ir.VectorType(element, VECTOR * 8 // dtype.bitwidth)


@register_default(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, _vector(fe_type.dtype))


def _vectors(dtype: Any, count: int) -> Any:
    return types.UniTuple(VectorType(dtype), count)


def _data(context, builder, array_type, array):  # type: ignore[no-untyped-def]
    return context.make_array(array_type)(context, builder, array).data


def _pack(context, builder, tuple_type, values):  # type: ignore[no-untyped-def]
    return context.make_tuple(builder, tuple_type, values)


@intrinsic
def zeros(typingctx, array, rows, columns):  # type: ignore[no-untyped-def]
    """A block of sums, (rows, columns) vectors of the array's type."""
    result = _vectors(array.dtype, len(rows) * len(columns))

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        zero = ir.Constant(_vector(array.dtype), None)
        return _pack(context, builder, result, [zero] * result.count)

    return result(array, rows, columns), codegen


@intrinsic
def read(typingctx, array, offset, columns):  # type: ignore[no-untyped-def]
    """Vectors of a contiguous array, from a flat element offset."""
    result = _vectors(array.dtype, len(columns))

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        vector = _vector(array.dtype)
        first = builder.gep(_data(context, builder, array, args[0]), [args[1]])
        pointer = builder.bitcast(first, vector.as_pointer())
        parts = [
            builder.load(builder.gep(pointer, [ir.IntType(64)(v)]), align=array.dtype.bitwidth // 8)
            for v in range(result.count)
        ]
        return _pack(context, builder, result, parts)

    return result(array, types.int64, columns), codegen


@intrinsic
def read_block(typingctx, array, offsets, column, columns):  # type: ignore[no-untyped-def]
    """A block of sums: vectors from ``column`` of each row that starts at one of the offsets."""
    result = _vectors(array.dtype, len(offsets) * len(columns))

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        vector = _vector(array.dtype)
        data = _data(context, builder, array, args[0])
        parts = []
        for offset in cgutils.unpack_tuple(builder, args[1]):
            first = builder.gep(data, [builder.add(offset, args[2])])
            pointer = builder.bitcast(first, vector.as_pointer())
            for v in range(len(columns)):
                part = builder.gep(pointer, [ir.IntType(64)(v)])
                parts.append(builder.load(part, align=array.dtype.bitwidth // 8))
        return _pack(context, builder, result, parts)

    return result(array, offsets, types.int64, columns), codegen


@intrinsic
def write_block(typingctx, array, offsets, column, sums):  # type: ignore[no-untyped-def]
    """Write a block of sums to ``column`` of the rows that start at the offsets."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        vector = _vector(array.dtype)
        data = _data(context, builder, array, args[0])
        values = cgutils.unpack_tuple(builder, args[3])
        wide = sums.count // offsets.count
        for r, offset in enumerate(cgutils.unpack_tuple(builder, args[1])):
            first = builder.gep(data, [builder.add(offset, args[2])])
            pointer = builder.bitcast(first, vector.as_pointer())
            for v in range(wide):
                part = builder.gep(pointer, [ir.IntType(64)(v)])
                builder.store(values[r * wide + v], part, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, offsets, types.int64, sums), codegen


@intrinsic
def plus(typingctx, sums, others):  # type: ignore[no-untyped-def]
    """The sum of two blocks."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pairs = zip(*(cgutils.unpack_tuple(builder, block) for block in args), strict=True)
        return _pack(context, builder, sums, [builder.fadd(a, b) for a, b in pairs])

    return sums(sums, sums), codegen


def _products(sign):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        sums_type, array, _, _, vectors = signature.args
        sums = cgutils.unpack_tuple(builder, args[0])
        data = _data(context, builder, array, args[1])
        parts = cgutils.unpack_tuple(builder, args[4])
        vector = parts[0].type
        for r, offset in enumerate(cgutils.unpack_tuple(builder, args[2])):
            number = builder.load(builder.gep(data, [builder.add(offset, args[3])]))
            if array.dtype.bitwidth < vectors.dtype.dtype.bitwidth:
                number = builder.fpext(number, vector.element)
            if sign < 0:
                number = builder.fneg(number)
            factor = broadcast(builder, vector, number)
            for v, part in enumerate(parts):
                k = r * len(parts) + v
                sums[k] = call_vector(builder, "fma", [factor, part, sums[k]])
        return _pack(context, builder, sums_type, sums)

    return codegen


@intrinsic
def add_products(typingctx, sums, array, offsets, shift, vectors):  # type: ignore[no-untyped-def]
    """sums[r, v] + array[offsets[r] + shift] * vectors[v], for a contiguous array."""
    return sums(sums, array, offsets, types.int64, vectors), _products(1)


@intrinsic
def subtract_products(typingctx, sums, array, offsets, shift, vectors):  # type: ignore[no-untyped-def]
    """sums[r, v] - array[offsets[r] + shift] * vectors[v]."""
    return sums(sums, array, offsets, types.int64, vectors), _products(-1)


@intrinsic
def every(typingctx, start, stride, rows):  # type: ignore[no-untyped-def]
    """The offsets start, start + stride, ... of so many rows."""
    result = types.UniTuple(types.int64, len(rows))

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        offsets = [args[0]]
        for _ in range(len(rows) - 1):
            offsets.append(builder.add(offsets[-1], args[1]))
        return _pack(context, builder, result, offsets)

    return result(types.int64, types.int64, rows), codegen


@intrinsic
def chosen(typingctx, numbers, first, last, stride, rows):  # type: ignore[no-untyped-def]
    """The offsets numbers[k] * stride for k from ``first``; beyond ``last`` that one again."""
    result = types.UniTuple(types.int64, len(rows))

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = _data(context, builder, numbers, args[0])
        offsets = []
        for r in range(len(rows)):
            k = builder.add(args[1], ir.IntType(64)(r))
            k = builder.select(builder.icmp_signed("<", k, args[2]), k, args[2])
            number = builder.load(builder.gep(data, [k]))
            if numbers.dtype.bitwidth < 64:
                number = builder.sext(number, ir.IntType(64))
            offsets.append(builder.mul(number, args[3]))
        return _pack(context, builder, result, offsets)

    return result(numbers, types.int64, types.int64, types.int64, rows), codegen


def _pair(context, builder, array, place, offset):  # type: ignore[no-untyped-def]
    first = builder.gep(_data(context, builder, array, place), [offset])
    element = ir.DoubleType() if array.dtype == types.float64 else ir.FloatType()
    return builder.bitcast(first, ir.VectorType(element, 2).as_pointer())


@intrinsic
def add_pair(typingctx, array, offset, factor, values, first):  # type: ignore[no-untyped-def]
    """array[offset] += factor * values[first] and the same for the next; returns both sums."""
    result = types.UniTuple(types.float64, 2)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        double = ir.VectorType(ir.DoubleType(), 2)
        place = _pair(context, builder, array, args[0], args[1])
        phi = builder.load(_pair(context, builder, values, args[3], args[4]), align=8)
        old = builder.load(place, align=array.dtype.bitwidth // 8)
        single = array.dtype.bitwidth == 32
        x = broadcast(builder, double, args[2])
        new = call_vector(builder, "fma", [x, phi, builder.fpext(old, double) if single else old])
        stored = builder.fptrunc(new, old.type) if single else new
        builder.store(stored, place, align=array.dtype.bitwidth // 8)
        lanes = [builder.extract_element(new, ir.IntType(32)(k)) for k in range(2)]
        return _pack(context, builder, result, lanes)

    return result(array, types.int64, types.float64, values, types.int64), codegen


class PairType(types.Type):
    """The Numba type of two doubles side by side."""


_PAIR = PairType("Pair")


@register_default(PairType)
class _PairModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), 2))


@intrinsic
def two(typingctx, number):  # type: ignore[no-untyped-def]
    """The same double twice."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return broadcast(builder, ir.VectorType(ir.DoubleType(), 2), args[0])

    return _PAIR(types.float64), codegen


@intrinsic
def read_pair(typingctx, array, offset):  # type: ignore[no-untyped-def]
    """Two doubles of a contiguous array, from a flat element offset."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load(_pair(context, builder, array, args[0], args[1]), align=8)

    return _PAIR(array, types.int64), codegen


@intrinsic
def fused(typingctx, left, right, total):  # type: ignore[no-untyped-def]
    """left * right + total of pairs."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return call_vector(builder, "fma", args)

    return _PAIR(_PAIR, _PAIR, _PAIR), codegen


@intrinsic
def sum_of(typingctx, pair):  # type: ignore[no-untyped-def]
    """The sum of both doubles of a pair."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = [builder.extract_element(args[0], ir.IntType(32)(k)) for k in range(2)]
        return builder.fadd(*lanes)

    return types.float64(_PAIR), codegen
