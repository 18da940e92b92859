"""How is the benchmark started?  Its settings, which are also its command line.

``losse bench`` and ``python benchmarks/core.py`` both end in :func:`run`, which starts one
measuring process: threads are limited through the environment, and libraries read that only when
they are first imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = ("jax", "gymnasium")  # of the measuring process

Section = Literal[
    "update-30",
    "predict-30",
    "exact-30",
    "batch-300",
    "growth",
    "recommended",
    "kernels",
    "startup",
]
SECTIONS: tuple[Section, ...] = get_args(Section)

# One thread in every library that would otherwise take all cores.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "Agg",
}


@dataclass(frozen=True)
class Settings:
    """Measure this library against the paper's update, interleaved on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: every section in a few minutes, short runs; full: the published figures."""

    sections: tuple[Section, ...] = SECTIONS
    """Which sections to run, in this order."""

    env_id: str = "Hopper-v5"
    """Gymnasium MuJoCo environment whose random-policy transitions are learned."""

    seed: int = 0
    """Seed of the transitions and of the projections."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Where this run writes."""
        return self.results / "quick" if self.preset == "quick" else self.results


def environment() -> dict[str, str]:
    """The environment of every measuring process."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths)}


def run(settings: Settings) -> None:
    """Run the benchmark in a process of its own; leaves with its exit code if that is not zero."""
    fields = json.dumps(asdict(settings), default=str)
    command = [sys.executable, "-m", "benchmarks.worker", fields]
    code = subprocess.run(command, env=environment(), check=False).returncode
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    import tyro

    run(tyro.cli(Settings))
