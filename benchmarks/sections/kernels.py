"""How close is each kernel to what this machine can do?

Bytes and operations are counted by the formula beside each kernel.  The least possible time is
the larger of bytes / bandwidth and operations / multiply rate, both measured in the same run.
Bandwidth is that of main memory: a kernel whose data stay in cache may be faster than this
"limit" if bytes decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks import machine
from benchmarks.context import Bench
from benchmarks.report import Measure, Outcome, duration


class Kernel(NamedTuple):
    """A kernel on data of a stated size, and what it must move and compute at least."""

    name: str
    task: Callable[[], object]
    bytes: float
    flops: float
    formula: str


def kernels(bench: Bench) -> list[Kernel]:
    """The table to measure."""
    return []


def run(bench: Bench) -> Outcome:
    """The machine's limits, then every kernel's share of them."""
    bench.step("limits of the machine")
    limits = machine.measure()
    measures = [
        Measure("machine: read from memory", f"{limits.read / 1e9:.3g} GB/s"),
        Measure("machine: triad", f"{limits.triad / 1e9:.3g} GB/s"),
        Measure("machine: matrix product, float64", f"{limits.dgemm / 1e9:.3g} GFLOP/s"),
        Measure("machine: matrix product, float32", f"{limits.sgemm / 1e9:.3g} GFLOP/s"),
    ]
    details: dict[str, object] = {"limits": limits._asdict()}
    for kernel in kernels(bench):
        bench.step(kernel.name)
        seconds = machine.best_seconds(kernel.task)
        least = max(kernel.bytes / limits.read, kernel.flops / limits.dgemm)
        share = least / seconds
        measures.append(
            Measure(f"kernel: {kernel.name}", duration(seconds), duration(least), ratio=share)
        )
        details[kernel.name] = {
            "seconds": seconds,
            "bytes": kernel.bytes,
            "flops": kernel.flops,
            "formula": kernel.formula,
            "share_of_limit": share,
        }
    return Outcome(measures, details)
