"""How a run becomes a record: one small JSON file with its result and everything behind it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from losse.storage.atomic import replacing

PACKAGES = (
    "losse",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "llvmlite",
    "gymnasium",
    "mujoco",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
    "sbx-rl",
    "river",
    "rliable",
)


@dataclass(frozen=True)
class Provenance:
    """What produced a result: package versions, git revision and processor."""

    versions: dict[str, str]
    revision: str | None
    cpu: str


@cache
def provenance() -> Provenance:
    """Describe the code and the machine of this process.

    `revision` is None outside a git checkout of losse, and ends in "-dirty" when the code (not
    the results beside it) differs from the commit.

    >>> "numpy" in provenance().versions
    True
    """
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return Provenance(versions=versions, revision=_git_revision(), cpu=_cpu_model())


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run.

    `setting` is what the experiment varies (correlation level, environment id, ...), `score` the
    figure that a table summarises, `curve` a list of (x, y), `settings` all parameters, `details`
    whatever else is worth keeping. Versions, revision and processor fill themselves in.

    >>> record = Record(experiment="toy", method="losse", setting=0.5, seed=3, score=0.1)
    >>> record.run
    'losse_0.5_seed3'
    """

    experiment: str
    method: str
    setting: str | float
    seed: int
    score: float
    curve: Sequence[tuple[float, float]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: provenance().versions)
    revision: str | None = field(default_factory=lambda: provenance().revision)
    cpu: str = field(default_factory=lambda: provenance().cpu)

    @property
    def run(self) -> str:
        """The record's file name without its ending: unique within an experiment."""
        return file_name(self.method, self.setting, f"seed{self.seed}")


def file_name(*parts: str | float) -> str:
    """Join what tells runs apart to a name that every file system takes.

    >>> file_name("nn", "a/b", "rate=0.1", "seed0")
    'nn_a-b_rate=0.1_seed0'
    """
    return re.sub(r"[^\w.+=-]+", "-", "_".join(map(str, parts)))


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write a value as strict JSON, atomically: a reader sees the old file or the whole new one.

    NumPy values, paths and dataclasses are converted; NaN and infinity become null.

    >>> import tempfile
    >>> path = write_json(Path(tempfile.mkdtemp()) / "x.json", {"a": np.float32(0.5)})
    >>> json.loads(path.read_text())
    {'a': 0.5}
    """
    path = Path(path)
    text = _json_lines(plain(value))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as write:
        write(text.encode())
    return path


def write_record(record: Record, folder: str | os.PathLike[str]) -> Path:
    """Write `record` to `folder/<run>.json`, replacing an earlier run of the same name.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> record = Record(experiment="toy", method="losse", setting="a", seed=0, score=0.25)
    >>> write_record(record, folder).name
    'losse_a_seed0.json'
    >>> [r.score for r in read_records(folder)]
    [0.25]
    """
    return write_json(Path(folder) / f"{record.run}.json", record)


def read_records(folder: str | os.PathLike[str]) -> list[Record]:
    """Read all records of a folder, in the order of their file names."""
    return [read_record(path) for path in sorted(Path(folder).glob("*.json"))]


def read_record(path: Path) -> Record:
    """Read one record. Raises ValueError if the file holds something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["score"] = math.nan if data["score"] is None else data["score"]
        data["curve"] = [(x, math.nan if y is None else y) for x, y in data["curve"]]
        return Record(**data)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a record: {error}") from error


def _json_lines(value: Any) -> str:
    """One line per key: readable, and small changes make small differences."""
    if not isinstance(value, dict):
        return json.dumps(value, allow_nan=False) + "\n"
    items = (f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in value.items())
    return "{\n" + ",\n".join(items) + "\n}\n"


def plain(value: Any) -> Any:
    """Reduce a value to what strict JSON can hold.

    >>> plain({"rates": (1e-3, np.float64(0.5)), "out": Path("results")})
    {'rates': [0.001, 0.5], 'out': 'results'}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _git_revision() -> str | None:
    package = Path(__file__).resolve().parent
    try:
        root = Path(_git("rev-parse", "--show-toplevel", cwd=package))
        # A wheel installed into some other project's checkout has no revision of its own.
        if root.resolve() / "src" / "losse" != package:
            return None
        revision = _git("rev-parse", "HEAD", cwd=root)
        changed = _git("status", "--porcelain", "--", "src", "benchmarks", cwd=root)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{revision}-dirty" if changed else revision


def _git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
