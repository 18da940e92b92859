"""Provenance of results: package versions, git revision with its patch, and processor."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

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
CODE = ("src", "benchmarks")
"""Folders whose uncommitted changes make a revision dirty; results beside them do not."""
_DIRTY = "-dirty"


@dataclass(frozen=True)
class Environment:
    """Code and machine behind some records.

    `revision` is None outside a git checkout of losse, and ends in "-dirty" where the code differs
    from the commit; `patch` is then a digest of that difference.

    >>> Environment({"numpy": "2.0"}, "0123abc-dirty", "a processor").is_dirty
    True
    """

    versions: Mapping[str, str]
    revision: str | None
    cpu: str
    patch: str | None = None

    @property
    def is_dirty(self) -> bool:
        """Whether the code differed from its commit."""
        return self.revision is not None and self.revision.endswith(_DIRTY)

    @property
    def id(self) -> str:
        """A short name that lines of records refer to."""
        return _digest(json.dumps(asdict(self), sort_keys=True))


@cache
def environment() -> Environment:
    """The code and the machine of this process.

    >>> "numpy" in environment().versions
    True
    """
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    revision, patch = git_revision(), source_patch()
    return Environment(versions, revision, _cpu_model(), _digest(patch) if patch else None)


def git_revision() -> str | None:
    """The commit that this code is of, marked where the code differs; None without a checkout."""
    root = _checkout()
    if root is None:
        return None
    revision = _git("rev-parse", "HEAD", cwd=root)
    return revision + _DIRTY if _git("status", "--porcelain", "--", *CODE, cwd=root) else revision


def source_patch() -> str:
    """The patch that makes this code out of its commit; empty if they are the same."""
    root = _checkout()
    if root is None:
        return ""
    changed = _git("diff", "HEAD", "--binary", "--", *CODE, cwd=root)
    new = _git("ls-files", "--others", "--exclude-standard", "--", *CODE, cwd=root).splitlines()
    # Compared with nothing, a new file differs, which git tells by its exit code.
    texts = [_git("diff", "--no-index", "/dev/null", name, cwd=root, codes=(0, 1)) for name in new]
    return "".join(f"{text}\n" for text in (changed, *texts) if text)


def _checkout() -> Path | None:
    """The root of the checkout that this package runs from."""
    package = Path(__file__).resolve().parents[1]
    try:
        root = Path(_git("rev-parse", "--show-toplevel", cwd=package))
    except (OSError, subprocess.SubprocessError):
        return None
    # A wheel installed into some other project's checkout has no revision of its own.
    return root if root.resolve() / "src" / "losse" == package else None


def _git(*arguments: str, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, timeout=30)
    if done.returncode not in codes:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    return done.stdout.strip("\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
