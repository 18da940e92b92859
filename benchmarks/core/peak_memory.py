"""Memory that learning a large model adds, measured in a process of its own by `batch_300`."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks.core.bench import Settings
from benchmarks.core.context import Bench
from benchmarks.core.sections.batch_300 import BATCH, N_GRIDS
from benchmarks.timing import split


def resident(field: str) -> int:
    """Resident bytes of this process: ``VmRSS`` now or ``VmHWM`` at its peak.

    ``getrusage`` is the substitute where there is no /proc; it knows only the peak, and on Linux
    it inherits that of the parent.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Learn as many rows as asked for and print the bytes added at the peak."""
    request = json.loads(sys.argv[1])
    bench = Bench(Settings(env_id=request["env_id"], seed=request["seed"]), lambda detail: None)
    # A model of two grids first: compiling is not part of the model's memory.
    small = bench.model(2, "auto", request["dtype"])
    bench.learning("", small).task(0, BATCH)
    before = resident("VmRSS")
    learn = bench.learning("", bench.model(N_GRIDS, "auto", request["dtype"])).task
    for first, last in split(0, request["rows"], BATCH):
        learn(first, last)
    print(json.dumps({"peak": resident("VmHWM") - before}))


if __name__ == "__main__":
    main()
