"""Speed, memory and accuracy of a large model that learns in batches.

The yardstick costs the same whatever it has learned, so a few of its rows are timed beside each
batch of ours.  It then goes on, untimed, to the number of rows at which accuracy is compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.core.context import Bench, Dtype, environment
from benchmarks.core.yardstick import Yardstick
from benchmarks.measures import Measure, Outcome, speedup
from benchmarks.timing import Timings, clock, split

N_GRIDS = 300
BATCH = 250
EARLY, STEADY = 2_500, 5_250  # rows seen; the method changes at 1,500
JUDGED_FROM = 2_000  # rows from which test errors differ by more than chance
YARDSTICK_ROWS = 2  # timed beside each batch
CHECKPOINTS = (250, 500, 1_000, 2_000, 3_000, 4_000, 6_000, 8_000)
BEGIN, BETWEEN, END = "first 2,500 rows", "to 5,250 rows", "after 5,250 rows"
SPEED = {"float32": ">= 25", "float64": ">= 15"}
BYTES = {"float32": 3.0e9, "float64": 5.6e9}
DTYPES: tuple[Dtype, ...] = ("float32", "float64")


def run(bench: Bench) -> Outcome:
    """Memory first, in processes of their own; then time; then accuracy."""
    memory = {dtype: peak_memory(bench, dtype) for dtype in DTYPES}
    yardstick = bench.yardstick(N_GRIDS)
    yardstick.learn(*(part[:1] for part in bench.single))

    measures: list[Measure] = []
    details: dict[str, Any] = {"peak_bytes": memory}
    errors: dict[str, dict[int, float]] = {}
    for dtype in DTYPES:
        phases, errors[dtype] = race(bench, dtype, yardstick)
        for phase, (ours, theirs) in phases.items():
            name = f"300 grids, batches of 250, {dtype}, {phase}"
            measures.append(speedup(name, ours, theirs, SPEED[dtype]))
            details[f"{dtype}, {phase}"] = {
                "ours": ours.summary(),
                "seconds_per_row": ours.per_row,
                "yardstick": theirs.summary(),
            }
        measures.append(
            Measure(
                f"300 grids, {dtype}, peak memory / promised limit",
                ours=f"{memory[dtype] / 1e9:.2f} GB",
                reference=f"{BYTES[dtype] / 1e9:.1f} GB",
                ratio=memory[dtype] / BYTES[dtype],
                target="<= 1",
            )
        )

    errors["yardstick"] = follow(bench, yardstick)
    for dtype in DTYPES:
        n = max(set(errors[dtype]) & set(errors["yardstick"]))
        measures.append(
            Measure(
                f"300 grids, {dtype}, test error after {n:,} rows",
                ours=f"{errors[dtype][n]:.4f}",
                reference=f"{errors['yardstick'][n]:.4f}",
                ratio=errors[dtype][n] / errors["yardstick"][n],
                target="<= 1" if n >= JUDGED_FROM else "",
            )
        )
    curve = [(float(n), e) for n, e in errors["float64"].items()]
    return Outcome(measures, details | {"test_nmse": errors}, curve)


def race(
    bench: Bench, dtype: Dtype, yardstick: Yardstick
) -> tuple[dict[str, tuple[Timings, Timings]], dict[int, float]]:
    """Learn batch by batch beside the yardstick; timings by phase and test errors by rows seen."""
    model = bench.model(N_GRIDS, "auto", dtype)
    ours = bench.learning(dtype, model, BATCH)
    theirs = bench.learning("yardstick", yardstick)
    compile_first(bench, dtype)

    phases = {phase: (Timings(), Timings()) for phase in (BEGIN, BETWEEN, END)}
    errors = {}
    for turn, (first, last) in enumerate(split(0, bench.budget.large_rows, BATCH)):
        into = phases[BEGIN if last <= EARLY else END if first >= STEADY else BETWEEN]
        seen = int(yardstick.memory.seen)
        turns = [(ours, first, last, into[0]), (theirs, seen, seen + YARDSTICK_ROWS, into[1])]
        for who in turns if turn % 2 == 0 else reversed(turns):
            clock(*who)
        if last in CHECKPOINTS:
            errors[last] = bench.test_error(model)
        bench.step(f"{dtype}, {last:,} rows")
    return phases, errors


def compile_first(bench: Bench, dtype: Dtype) -> None:
    """Have the kernels compiled by a small model of the same kind."""
    small = bench.model(N_GRIDS, "auto", dtype)
    bench.learning("", small).task(0, 2)


def follow(bench: Bench, yardstick: Yardstick) -> dict[int, float]:
    """Let the yardstick go on in small steps; its test errors by rows seen."""
    errors = {}
    seen = int(yardstick.memory.seen)
    while seen < bench.budget.large_reference_rows:
        stop = min(seen - seen % 50 + 50, bench.budget.large_reference_rows)
        yardstick.learn(*(part[seen:stop] for part in bench.single))
        seen = stop
        if seen in CHECKPOINTS:
            errors[seen] = bench.test_error(yardstick)
        bench.step(f"accuracy of the yardstick, {seen:,} rows")
    return errors


def peak_memory(bench: Bench, dtype: Dtype) -> int:
    """Bytes that learning adds at its peak, in a fresh process."""
    bench.step(f"peak memory, {dtype}")
    request = {
        "env_id": bench.settings.env_id,
        "seed": bench.settings.seed,
        "dtype": dtype,
        "rows": STEADY + BATCH,
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.core.peak_memory", json.dumps(request)],
        env=environment(),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return int(json.loads(done.stdout)["peak"])
