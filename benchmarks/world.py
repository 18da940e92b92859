"""How long do world models take to learn and to imagine?  `losse bench world`.

All models take turns in one process, on one core with one thread. One record is written per model
and setting; the table and the figure are drawn from them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.core import environment

REQUIRED = ("jax", "flax", "gymnasium")  # of the measuring process

Method = Literal["losse", "full-replay", "online", "si", "coreset"]
Setting = Literal["discrete", "continuous"]


@dataclass(frozen=True)
class Settings:
    """Measure updates and imagined steps of all world models, interleaved on one core."""

    preset: Literal["quick", "full"] = "full"
    """quick: few sizes and repeats; full: the published figures."""

    methods: tuple[Method, ...] = ("losse", "full-replay", "online", "si", "coreset")
    """Which models to measure, with the paper's settings."""

    settings: tuple[Setting, ...] = ("discrete", "continuous")
    """The paper's two: 25 transitions per update and 30 grids or 3 x 32 units; 250, and 300 grids
    (5.5 GB) or 4 x 400 units."""

    seed: int = 0
    """Seed of the transitions and of the models."""

    core: int | None = None
    """Number of the processor core to stay on; by default the last one this process may use."""

    results: Path = Path("results/bench/world")
    """Folder of the records, the table and the figure; a quick run uses its subfolder `quick`."""

    @property
    def folder(self) -> Path:
        """Where this run writes."""
        return self.results / "quick" if self.preset == "quick" else self.results


def run(settings: Settings) -> None:
    """Measure in a process of its own; leaves with its exit code if that is not zero."""
    fields = json.dumps(asdict(settings), default=str)
    command = [sys.executable, "-m", "benchmarks.world_worker", fields]
    code = subprocess.run(command, env=environment(), check=False).returncode
    if code:
        raise SystemExit(code)
