"""`losse bench jax`: the functional form against the paper's listing, both compiled by JAX.

All take turns over the same rows of Hopper, in single precision with 30 grids, on one core with one
thread. Updates are those of a `lax.scan`, as in a compiled loop. One record is written per
instruction set, in the place of an earlier one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from benchmarks.display import live_line, pin, show
from benchmarks.measures import Outcome, speedup, table_of
from benchmarks.timing import Contender, split, take_turns
from losse._kernels.block import INSTRUCTIONS
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.workers import Failure, run_jobs

REQUIRED = ("jax", "gymnasium", "mujoco")
N_GRIDS, N_BINS, GRID_DIM, RIDGE = 30, 10, 2, 1e-5
WARM_UP, CHUNK, BATCH = 400, 200, 1_000
REPEATS = 50  # of 10,000 predictions: large temporary arrays make the listing's times vary
ROWS = {"quick": 800, "full": 4_000}
TARGETS = {"update in a scan": ">= 3", "prediction": ">= 5"}
ABOUT = f"""\
`losse.jax` against the paper's listing, both compiled by JAX: {N_GRIDS} grids, single precision,
transitions of Hopper, one core with one thread. Updates are in a `lax.scan`, {CHUNK} rows at a
time; predictions are of {BATCH:,} rows. "XLA alone" is `losse.jax` without its kernels. Ratios are
of median times by the clock, and of all processor time. Drawn from the records in this folder by
`losse bench jax`.
"""


@dataclass(frozen=True)
class Settings:
    """Measure the functional form against the paper's listing on a CPU."""

    preset: Literal["quick", "full"] = "full"
    """quick: 800 rows; full: 4,000."""

    seed: int = 0
    """Seed of the transitions and the grids."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench/jax")
    """Folder of the records and the table; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Folder that this run writes to."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> list[Record]:
    """Measure in a process of its own, then draw the table of all records."""
    store = Store(settings.folder)
    for _, result in run_jobs(measure, [settings], workers=1):
        if isinstance(result, Failure):
            raise RuntimeError(f"the measurement failed: {result.reason}\n{result.trace}")
        store.put(result)
    records = store.read()
    text = f"# The functional form\n\n{ABOUT}"
    for record in records:
        about = f"{record.setting}, {record.environment.cpu}"
        text += f"\n## {about}\n\n{table_of(record.details['measures']).markdown()}\n"
    (settings.folder / "table.md").write_text(text, encoding="utf-8")
    show(text)
    print(f"Records and table: {settings.folder}")
    return records


def measure(settings: Settings) -> Record:
    """Let all take turns, and make a record of it; the score is the ratio of updates."""
    began = time.perf_counter()
    pin(settings.core)
    with live_line("jax") as say:
        outcome = compared(ROWS[settings.preset], settings.seed, say)
    options = {"preset": settings.preset, "grids": N_GRIDS, "rows": ROWS[settings.preset]}
    measures = [m.as_dict() for m in outcome.measures]
    return Record(
        experiment="bench-jax", method="losse", setting=INSTRUCTIONS, seed=settings.seed,
        score=measures[0]["ratio"], settings=options, seconds=time.perf_counter() - began,
        details=outcome.details | {"measures": measures},
    )  # fmt: skip


def compared(rows: int, seed: int, say: Callable[[str], None]) -> Outcome:
    """Times of updates in a scan and of predictions, and how far apart predictions are."""
    import jax

    import losse.jax
    from benchmarks import transitions
    from benchmarks.core import yardstick
    from losse.jax import native

    made = transitions.standardise(transitions.load("Hopper-v5", 10_000, seed), 10_000)
    X, Y = (part.astype(np.float32) for part in made)
    model = losse.jax.init(
        jax.random.key(seed), X.shape[1], Y.shape[1], n_grids=N_GRIDS, scaling=None, ridge=RIDGE
    )
    shape = yardstick.Shape(N_GRIDS, N_BINS, GRID_DIM, RIDGE)
    start = yardstick.start(shape, np.asarray(model.grids.projection), Y.shape[1])

    def row_by_row(update: Callable[..., Any]) -> Callable[..., Any]:
        def learn(state: Any, X: Any, Y: Any) -> Any:
            return jax.lax.scan(lambda s, row: (update(s, *row), None), state, (X, Y))[0]

        return jax.jit(learn, donate_argnums=0)

    def listed(state: Any, x: Any, y: Any) -> Any:
        return yardstick.learn_row(shape, state, x[None], y[None])

    ways: dict[str, tuple[Any, Any]] = {
        "listing": (row_by_row(listed), start),
        "update in a scan": (row_by_row(losse.jax.update), model),
        "update of a batch": (jax.jit(losse.jax.update, donate_argnums=0), model),
        "update in a scan, XLA alone": (row_by_row(losse.jax.update), model),
    }
    states: dict[str, Any] = {}

    def learning(name: str) -> Contender:
        learn, state = ways[name]
        jax.clear_caches()  # or what was traced with kernels is used without
        target = (lambda dtype: None) if name.endswith("alone") else native.target
        with patch.object(native, "target", target):
            compiled = learn.lower(state, X[:CHUNK], Y[:CHUNK]).compile()
        states[name] = jax.tree.map(lambda leaf: leaf.copy(), state)

        def task(first: int, last: int) -> None:
            rows = X[first:last], Y[first:last]
            states[name] = jax.block_until_ready(compiled(states[name], *rows))

        return Contender(name, task, CHUNK)

    say("compiling")
    contenders = [learning(name) for name in ways]
    take_turns(contenders, split(0, WARM_UP, CHUNK))
    timings = take_turns(contenders, split(WARM_UP, WARM_UP + rows, CHUNK), lambda n: say(f"{n}"))

    def predicting(name: str, predict: Callable[[Any], Any]) -> Contender:
        return Contender(
            name, lambda first, last: jax.block_until_ready(predict(X[first:last])), BATCH
        )

    memory, learned = states["listing"], states["update in a scan"]
    readers = [
        predicting(
            "listing",
            lambda x: yardstick.predict(shape, memory.projection, memory.weights, x),
        ),
        predicting("prediction", lambda x: losse.jax.predict(learned, x)),
    ]
    chunks = split(0, 10 * BATCH, BATCH)
    take_turns(readers, chunks[:1])
    read = take_turns(readers, chunks * REPEATS)
    expected = yardstick.predict(shape, memory.projection, memory.weights, X[:BATCH])
    apart = np.abs(np.asarray(losse.jax.predict(learned, X[:BATCH])) - np.asarray(expected)).max()
    names = [name for name in ways if name != "listing"]
    measures = [speedup(n, timings[n], timings["listing"], TARGETS.get(n, "")) for n in names]
    measures.append(
        speedup("prediction", read["prediction"], read["listing"], TARGETS["prediction"])
    )
    return Outcome(
        measures,
        {
            "timings": {name: t.summary() for name, t in timings.items()},
            "predictions": {name: t.summary() for name, t in read.items()},
            "largest_difference_of_predictions": float(apart),
            "largest_prediction": float(np.abs(np.asarray(expected)).max()),
        },
    )
