"""Time of each kernel beside the least that this machine needs for its work.

Bytes and operations are counted by the formula beside each kernel.  The least possible time is
the larger of bytes / bandwidth and operations / multiply rate, both measured in the same run, and
that of operations which have to wait for all these.
Bandwidth is that of main memory: a kernel whose data stay in cache may be faster than this
"limit" if bytes decide. Lines here and there are read and written more slowly than lines in
sequence, so the kernels that do so are compared with a loop that only touches such lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.core.context import RIDGE, Bench, Dtype
from benchmarks.measures import Measure, Outcome, duration
from losse._kernels.accumulate import add_packed
from losse._kernels.block import ROWS, VECTOR, WIDE, add_products, every, read, write_block, zeros
from losse._kernels.block_update import RECENT
from losse._kernels.packed import packed_times
from losse._kernels.simd import aligned, padded
from losse.encoders.features import SparseFeatures
from losse.ftl.memories import new_memory
from losse.ftl.memories.packed import PackedMemory
from losse.ftl.memories.square import SquareMemory
from losse.ftl.solvers.sparse import FastSparseSolver

SMALL, LARGE = 30, 300  # grids
STREAM_BYTES = 400_000_000  # per array
MATRIX = 1536
MANY, BATCH, TILE = 10_000, 250, 512  # rows
REGISTER_STEPS, TIMES = 64, 1000  # of a loop in registers
ENOUGH = 0.1  # seconds of timings
LINE = 64  # bytes that move together
JUDGED = ("encode", "predict from inputs", "accumulate, square", "sparse block update")
TARGET = ">= 0.5"


class Kernel(NamedTuple):
    """A kernel on data of a stated size, and what it must move and compute at least."""

    name: str
    task: Callable[[], object]
    bytes: float
    flops: float
    formula: str
    dtype: Dtype = "float64"
    scattered: bool = False
    """Whether its bytes are lines here and there."""
    then: float = 0.0
    """Operations that wait for all others and all bytes."""


def small_kernels(bench: Bench) -> list[Kernel]:
    """Those that work on rows, at 30 grids."""
    encoder = bench.encoder(SMALL).fit(bench.rows.inputs[:1])
    X, Y = (np.ascontiguousarray(part[:MANY]) for part in bench.rows)
    features = encoder.encode(X)
    K, D = encoder.n_active, encoder.dimension
    F, S = X.shape[1], Y.shape[1]
    axes = encoder.n_grids * encoder.grid_dim
    W, out = aligned((D, padded(S))), aligned((MANY, padded(S)))

    batch = features[:BATCH]
    square = new_memory(encoder, S, "float64")
    solver = FastSparseSolver(new_memory(encoder, S, "float64"), RIDGE, K)
    assert isinstance(square, SquareMemory)
    targets, ones = aligned((BATCH, padded(S))), np.ones(BATCH)
    targets[:, :S] = Y[:BATCH]
    stale, followed, changed = rows_to_read(batch.indices, D)
    return [
        Kernel(
            "encode",
            lambda: encoder.encode(X[:TILE]),
            TILE * (8 * F + 12 * K),
            TILE * (2 * F * axes + 30 * axes + K),
            "bytes n (8 F + 12 K); flops n (2 F + 30) axes for projection and sigmoid, + n K",
        ),
        Kernel(
            "features times weights",
            lambda: features.times(W, out),
            MANY * (12 * K + 8 * S) + 8 * D * S,
            2 * MANY * K * S,
            "bytes n (12 K + 8 S) + 8 D S; flops 2 n K S",
        ),
        Kernel(
            "predict from inputs",
            lambda: encoder.times(X[:TILE], W, out[:TILE], S),
            TILE * (8 * F + 8 * S) + 8 * D * S,
            TILE * (2 * F * axes + 30 * axes + 2 * K * S),
            "bytes n (8 F + 8 S) + 8 D S; flops n (2 F + 30) axes + 2 n K S",
        ),
        Kernel(
            "accumulate, square",
            lambda: batch.add_products(ones, square.A),
            2 * LINE * touched_lines(batch.indices, batch.indices, D, 8),
            2 * BATCH * K * K,
            "bytes: each line of A that the batch touches, read and written; flops 2 n K^2",
            scattered=True,
        ),
        Kernel(
            "sparse block update",
            lambda: solver.learn(batch, targets, ones),
            8 * D * stale + LINE * changed,
            2 * S * (D * stale + K * followed),
            "bytes 8 D per row of A read in full, and its lines that change, written; flops 2 D S "
            "per such row, 2 K S per remembered step followed; then K^3 / 3 + 2 K^2 S per sample "
            "to solve",
            then=BATCH * (K**3 / 3 + 2 * K**2 * S),
        ),
    ]


def large_kernels(bench: Bench, dtype: Dtype) -> list[Kernel]:
    """Those that work on the packed A, at 300 grids."""
    encoder = bench.encoder(LARGE).fit(bench.rows.inputs[:1])
    S = bench.rows.targets.shape[1]
    memory = new_memory(encoder, S, dtype)
    assert isinstance(memory, PackedMemory)
    batch = encoder.encode(np.ascontiguousarray(bench.rows.inputs[:BATCH]))
    width = padded(S, memory.A.dtype)
    W, out = (aligned((encoder.dimension, width), memory.A.dtype) for _ in range(2))
    ones = np.ones(BATCH)
    return [
        Kernel(
            f"accumulate, packed, {dtype}",
            lambda: add_packed(memory.A, memory.size, batch.indices, batch.values, ones, 0, LARGE),
            2 * LINE * lines_of_pairs(batch, memory),
            BATCH * encoder.n_active**2,
            "bytes: each line of A that the batch touches, read and written; flops n K^2",
            dtype,
            scattered=True,
        ),
        Kernel(
            f"packed product, {dtype}",
            lambda: packed_times(memory.A, memory.size, W, out),
            memory.A.nbytes,
            4 * memory.A.size * S,
            "bytes: all of packed A; flops 4 S per number in it",
            dtype,
        ),
    ]


def table(bench: Bench) -> Iterator[Kernel]:
    """All kernels; one set of memories at a time."""
    yield from small_kernels(bench)
    yield from large_kernels(bench, "float64")
    yield from large_kernels(bench, "float32")


def rows_to_read(indices: NDArray[np.int32], dimension: int) -> tuple[int, int, int]:
    """What a batch needs of A: rows in full, remembered steps to follow, lines that change.

    Of the lines those in rows that are read in full, since others may still be in cache.
    """
    last = np.full(dimension, -RECENT - 1)
    stale = followed = changed = 0
    for now, cells in enumerate(indices):
        ages = now - last[cells]
        some = int((ages > RECENT).sum())
        stale += some
        changed += some * len(np.unique(cells * 8 // LINE))
        followed += int((ages[ages <= RECENT] - 1).sum())
        last[cells] = now
    return stale, followed, changed


def touched_lines(
    rows: NDArray[np.integer], columns: NDArray[np.integer], width: int, itemsize: int
) -> int:
    """Distinct cache lines of a matrix of this width at the outer products of the index rows."""
    flat = rows[:, :, None].astype(np.int64) * width + columns[:, None, :]
    return len(np.unique(flat * itemsize // LINE))


def lines_of_pairs(batch: SparseFeatures, memory: PackedMemory, sample: int = 300) -> float:
    """Touched lines over all blocks of a packed A, estimated from some of them."""
    n_grids = memory.dimension // memory.size
    by_grid = (batch.indices % memory.size).reshape(len(batch), n_grids, -1)
    pairs = np.random.default_rng(0).integers(n_grids, size=(sample, 2))
    counts = [
        touched_lines(by_grid[:, g], by_grid[:, h], memory.size, memory.A.itemsize)
        for g, h in pairs
    ]
    return float(np.mean(counts)) * len(memory.A)


def run(bench: Bench) -> Outcome:
    """The machine's limits, then every kernel's share of them."""
    bench.step("limits of the machine")
    limits = measured_limits()
    measures = [
        Measure("machine: read from memory", f"{limits.read / 1e9:.3g} GB/s"),
        Measure("machine: triad", f"{limits.triad / 1e9:.3g} GB/s"),
        Measure("machine: single lines, read and written", f"{limits.lines / 1e9:.3g} GB/s"),
        Measure("machine: matrix product, float64", f"{limits.dgemm / 1e9:.3g} GFLOP/s"),
        Measure("machine: matrix product, float32", f"{limits.sgemm / 1e9:.3g} GFLOP/s"),
        Measure("machine: products in registers, float64", f"{limits.registers / 1e9:.3g} GFLOP/s"),
    ]
    details: dict[str, object] = {"limits": limits._asdict()}
    for kernel in table(bench):
        bench.step(kernel.name)
        seconds = best_seconds(kernel.task, repeats=5)
        rate = limits.dgemm if kernel.dtype == "float64" else limits.sgemm
        bandwidth = limits.lines if kernel.scattered else limits.read
        least = max(kernel.bytes / bandwidth, kernel.flops / rate) + kernel.then / rate
        share = least / seconds
        measures.append(
            Measure(
                f"kernel: {kernel.name}, share of the machine's limit",
                duration(seconds),
                duration(least),
                ratio=share,
                target=TARGET if kernel.name in JUDGED else "",
            )
        )
        details[kernel.name] = {
            "seconds": seconds,
            "bytes": kernel.bytes,
            "flops": kernel.flops,
            "then": kernel.then,
            "formula": kernel.formula,
            "share_of_limit": share,
        }
    return Outcome(measures, details)


class Limits(NamedTuple):
    """Bytes per second and floating-point operations per second."""

    read: float
    triad: float
    lines: float
    dgemm: float
    sgemm: float
    registers: float


@numba.njit(fastmath=True)
def _triad(a, b, c, s):
    for i in range(a.size):
        a[i] = b[i] + s * c[i]


@numba.njit
def _touch(a, places):
    for i in places:
        a[i] += 1.0


def best_seconds(task: Callable[[], object], repeats: int = 9) -> float:
    """The shortest of several timings, of many if they are short: what is possible, not usual."""
    task()
    taken: list[float] = []
    while len(taken) < repeats or sum(taken) < ENOUGH:
        begin = time.perf_counter()
        task()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def measured_limits() -> Limits:
    """Limits of one core, measured now, in a few seconds.

    Bandwidth is over arrays far beyond the last-level cache: reading (a matrix times a vector), the
    triad a = b + s * c, and a quarter of the lines of an array as large as A, in any order. The
    rate of multiplying matrices is that of the installed BLAS with as many threads as the process
    has been given, here one. A BLAS need not use all that the processor has: so there is the rate
    of a loop in registers, too, which uses what our kernels are compiled for.
    """
    size = STREAM_BYTES // 8
    a, b, c = (np.full(size, value) for value in (0.0, 1.0, 2.0))
    tall = b.reshape(-1, 5_000)
    read = b.nbytes / best_seconds(lambda: np.matmul(tall, c[:5_000]))
    # A store first fetches its cache line, so the triad moves four arrays, not three.
    triad = 4 * a.nbytes / best_seconds(lambda: _triad(a, b, c, 3.0))
    part = a[: size // 4]
    lines = np.random.default_rng(0).permutation(part.nbytes // LINE)[: part.nbytes // LINE // 4]
    touched = 2 * LINE * len(lines) / best_seconds(lambda: _touch(part, lines * (LINE // 8)))
    rates = _matmul_rate(np.float64), _matmul_rate(np.float32), _register_rate()
    return Limits(read, triad, touched, *rates)


def _matmul_rate(dtype: type[np.floating]) -> float:
    left = np.random.default_rng(0).random((MATRIX, MATRIX)).astype(dtype)
    out = np.empty_like(left)
    return 2 * MATRIX**3 / best_seconds(lambda: np.matmul(left, left, out=out))


def _register_rate() -> float:
    numbers, sums = aligned((len(ROWS), REGISTER_STEPS)), aligned((len(ROWS), len(WIDE) * VECTOR))
    operations = 2 * TIMES * REGISTER_STEPS * len(ROWS) * len(WIDE) * VECTOR // 8
    return operations / best_seconds(lambda: _in_registers(numbers, sums))


@numba.njit
def _in_registers(numbers, sums):
    rows = every(0, numbers.shape[1], ROWS)
    total = zeros(sums, rows, WIDE)
    line = read(sums, 0, WIDE)
    for _ in range(TIMES):
        for k in range(numbers.shape[1]):
            total = add_products(total, numbers, rows, k, line)
    write_block(sums, every(0, sums.shape[1], ROWS), 0, total)
