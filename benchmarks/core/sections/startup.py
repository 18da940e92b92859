"""Time until the first prediction, also where nothing can be cached.

Fresh processes take turns: one imports NumPy and scikit-learn, the other learns and predicts as
well.  An unwritable cache is simulated with plain files where folders would have to be made,
because permissions do not stop a superuser.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import losse
from benchmarks.core.context import Bench, environment
from benchmarks.measures import Measure, Outcome, duration

PROMISE = 2.0  # seconds
BASE = "import numpy as np, sklearn.base, sklearn.utils\n"
FIRST_USE = BASE + (
    "from losse import FTLRegressor, LosseEncoder\n"
    "rng = np.random.default_rng(0)\n"
    "X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))\n"
    "model = FTLRegressor(encoder=LosseEncoder(seed=0), solver='sparse', ridge=1e-5)\n"
    "print(model.partial_fit(X, Y).predict(X[:1])[0, 0])\n"
)


def run(bench: Bench) -> Outcome:
    """Seconds of each kind of process, interleaved, and one without any cache."""
    here = environment()
    bench.step("filling the cache")
    _, expected = launch(FIRST_USE, here)
    seconds: dict[str, list[float]] = {"base": [], "losse": []}
    for _ in range(bench.budget.startup_repeats):
        seconds["base"].append(launch(BASE, here)[0])
        seconds["losse"].append(launch(FIRST_USE, here)[0])
        bench.step("warm cache")
    base, ours = (float(np.median(seconds[kind])) for kind in ("base", "losse"))

    bench.step("no cache")
    uncached, answer = without_cache(here)
    return Outcome(
        measures=[
            Measure(
                "start-up to the first prediction, beyond NumPy and scikit-learn",
                ours=duration(ours - base),
                reference=duration(PROMISE),
                ratio=(ours - base) / PROMISE,
                target="<= 1",
            ),
            Measure(
                "start-up where no cache can be written, same prediction",
                ours=duration(uncached),
                reference=duration(ours),
                ratio=float(answer == expected),
                target=">= 1",
            ),
        ],
        details={"seconds": seconds, "seconds_without_cache": uncached},
    )


def launch(code: str, env: dict[str, str], *arguments: str) -> tuple[float, str]:
    """Run code in a fresh interpreter: its wall time and what it printed."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - begin, done.stdout.strip()


def without_cache(env: dict[str, str]) -> tuple[float, str]:
    """The first use of a copy of the package that can write nowhere Numba would look."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "losse"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(losse.__file__).parent, copy, ignore=ignored)
        for package in [copy, *(p for p in copy.rglob("*") if p.is_dir())]:
            (package / "__pycache__").touch()
        obstacle = Path(folder) / "obstacle"
        obstacle.touch()
        nowhere = {
            name: str(obstacle / "x") for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
        }
        return launch(FIRST_USE, env | nowhere | {"PYTHONPATH": folder})
