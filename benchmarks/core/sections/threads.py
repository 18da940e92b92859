"""What the threads of linear algebra cost: as many as cores, as users have them, beside one.

Fresh processes take turns, on all cores of the machine: their libraries count these when they are
loaded. For comparison the same with as many threads as cores for all products, however small.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.core.context import Bench, environment
from benchmarks.core.sections.startup import launch
from benchmarks.measures import Measure, Outcome, duration

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
ROWS, BATCH = 1_000, 25
LEARN = f"""\
import os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, range(os.cpu_count()))
import numpy as np
import losse.threads
from losse import FTLRegressor
if sys.argv[1:] == ["all"]:
    losse.threads.LARGE = 0
rng = np.random.default_rng(0)
X, W = rng.uniform(-1, 1, ({ROWS}, 14)), rng.normal(size=(14, 12))
Y = np.tanh(X @ W)
model = FTLRegressor().partial_fit(X[:{BATCH}], Y[:{BATCH}])
begin = time.perf_counter()
for part in range({BATCH}, {ROWS}, {BATCH}):
    model.partial_fit(X[part : part + {BATCH}], Y[part : part + {BATCH}])
print(time.perf_counter() - begin)
"""


def run(bench: Bench) -> Outcome:
    """Seconds of learning by the clock, of each kind of process."""
    usual = {name: value for name, value in environment().items() if name not in THREADS}
    single = usual | dict.fromkeys(THREADS, "1")
    kinds: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
        "one": (single, ()),
        "usual": (usual, ()),
        "all": (usual, ("all",)),
    }
    launch(LEARN, single)  # compiles
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(bench.budget.startup_repeats):
        for kind, (env, arguments) in kinds.items():
            seconds[kind].append(float(launch(LEARN, env, *arguments)[1]))
            bench.step(kind)
    one, ours, everywhere = (float(np.median(seconds[kind])) for kind in kinds)
    return Outcome(
        measures=[
            Measure(
                "recommended model, threads as they are / one thread, by the clock",
                ours=duration(ours),
                reference=duration(one),
                ratio=ours / one,
                target="<= 1.1",
            ),
            Measure(
                "the same with threads for small products, too",
                ours=duration(everywhere),
                reference=duration(one),
                ratio=everywhere / one,
                target="",
            ),
        ],
        details={"seconds": seconds, "cores": os.cpu_count()},
    )
