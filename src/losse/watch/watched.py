"""The watched folders: which runs they hold, how far these are, and what of it has changed."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from losse.runs.journal import LIVE, POINTS, PROBE, SWEEP, read_journal, thinned
from losse.runs.record import Record
from losse.runs.store import STAGES, Store
from losse.runs.style import style_of
from losse.watch.lines import RecordFile

DEPTH = 6
"""Levels of folders below those that are named in which runs are looked for."""
MOST_FOLDERS = 5000
"""Folders that are looked into, so that a wrong name such as / does not take for ever."""
MOST_PROBE_BYTES = 16_000_000
SHOWN_POINTS = 4000
"""Places on the horizontal axis of a folder's curves."""
_LINE_LEAST = 40  # points of a line, however many there are
_SKIPPED = ("checkpoint-", ".")


@dataclass
class Folder:
    """One folder with records or with runs that go on, as the page shows it."""

    path: Path
    name: str
    files: dict[str, RecordFile] = field(default_factory=dict)
    signature: tuple[Any, ...] = ()
    version: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sweep: dict[str, Any] | None = None
    body: bytes = b""

    @property
    def id(self) -> str:
        """What names the folder in addresses: never its path."""
        return _digest(str(self.path))

    def summary(self) -> dict[str, Any]:
        """What the list of folders shows."""
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "runs": len(self.runs),
            "running": sum(run["state"] == "running" for run in self.runs),
            "problems": len(self.problems),
            "updated": max((run["updated"] for run in self.runs), default=0),
            "experiments": sorted({run["experiment"] for run in self.runs}),
            "sweep": self.sweep is not None,
        }


class Watched:
    """Folders that are watched, with everything below them.

    Only files named `runs.jsonl`, `sweep.jsonl`, `environments.json`, `live.json`,
    `probe.json` and `progress.json` are read, and only where they really lie in one of the folders:
    a link that leads out of them is not followed. Safe to use from several threads.

    Parameters
    ----------
    roots
        Folders of runs, or above them.

    Examples
    --------
    >>> import tempfile
    >>> from losse.runs.store import write_record
    >>> folder = Path(tempfile.mkdtemp())
    >>> record = Record(experiment="toy", method="losse", setting="a", seed=0, score=0.25,
    ...                 curve=[(1, 0.5), (2, 0.25)])
    >>> _ = write_record(record, folder)
    >>> watched = Watched([folder])
    >>> watched.refresh()
    True
    >>> [one["runs"] for one in watched.overview()["folders"]]
    [1]
    """

    def __init__(self, roots: Sequence[str | os.PathLike[str]]) -> None:
        self.roots = [Path(root).resolve() for root in roots]
        self._folders: dict[Path, Folder] = {}
        self._probes: dict[str, Path] = {}
        self._lock = threading.Lock()
        self.version = 0

    def refresh(self) -> bool:
        """Look for what has changed; return whether anything has."""
        with self._lock:
            found = self._find()
            changed = found.keys() != self._folders.keys()
            self._folders = {
                path: self._folders.get(path) or Folder(path, self._name(path)) for path in found
            }
            for path, files in found.items():
                changed |= self._refresh_folder(self._folders[path], files)
            self.version += changed
            return changed

    def overview(self) -> dict[str, Any]:
        """All folders in few words, those that changed last first."""
        with self._lock:
            folders = [folder.summary() for folder in self._folders.values()]
        folders.sort(key=lambda one: (-one["running"], -one["updated"], one["name"]))
        roots = [str(root) for root in self.roots]
        return {"version": self.version, "roots": roots, "folders": folders}

    def versions(self) -> dict[str, int]:
        """The version of each folder, by its id."""
        with self._lock:
            return {folder.id: folder.version for folder in self._folders.values()}

    def folder(self, name: str) -> tuple[int, bytes] | None:
        """Version and JSON of a folder, None if its id is unknown."""
        with self._lock:
            for folder in self._folders.values():
                if folder.id == name:
                    if not folder.body:
                        folder.body = _body(folder)
                    return folder.version, folder.body
        return None

    def folders(self) -> list[Folder]:
        """The folders themselves, by name."""
        with self._lock:
            return sorted(self._folders.values(), key=lambda folder: folder.name)

    def probe(self, run: str) -> dict[str, Any] | None:
        """What is known of a run's model; None for an unknown run, a problem if it is broken."""
        with self._lock:
            path = self._probes.get(run)
        return None if path is None else read_probe(path)

    def _find(self) -> dict[Path, list[Path]]:
        """The files of each folder that has any."""
        found: dict[Path, list[Path]] = {}
        for root in self.roots:
            for folder, names in _walk(root):
                for name in names:
                    path = folder / name
                    if path.is_symlink() and not _inside(path, self.roots):
                        continue
                    # A run's journal belongs to the folder that will have its record.
                    above = name in (LIVE, PROBE) and folder != root
                    home = folder.parent if above else folder
                    found.setdefault(home, []).append(path)
        return found

    def _name(self, path: Path) -> str:
        for root in self.roots:
            if path == root:
                return root.name or str(root)
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.name

    def _refresh_folder(self, folder: Folder, files: list[Path]) -> bool:
        signature = tuple(sorted((str(path), *_stamp(path)) for path in files))
        if signature == folder.signature:
            return False
        folder.signature = signature
        folder.version += 1
        folder.body = b""
        folder.problems = []
        store = Store(folder.path)
        try:
            environments = store.environments()
        except (ValueError, OSError) as error:
            environments = {}
            folder.problems.append(str(error))
        runs: dict[tuple[Any, ...], dict[str, Any]] = {}
        for stage in STAGES:
            if store.path(stage) in files:
                file = folder.files.setdefault(stage, RecordFile(store.path(stage), _recorded))
                file.refresh(environments)
                folder.problems += file.problems
                for key, run in file.kept.items():
                    runs[(stage, *key)] = run | {"stage": stage}
        folder.sweep = None
        for path in files:
            if path.name == LIVE:
                self._take_journal(folder, path, runs)
            elif path.name == SWEEP:
                try:
                    folder.sweep = read_journal(path)
                except (ValueError, OSError) as error:
                    folder.problems.append(str(error))
        for run in runs.values():
            run["id"] = _digest(
                folder.id, *map(str, (run["stage"], run["method"], run["setting"], run["seed"])),
                json.dumps(run["settings"], sort_keys=True),
            )  # fmt: skip
            if "probe" in run:
                self._probes[run["id"]] = run["probe"]
            run["has_probe"] = run.pop("probe", None) is not None
        folder.runs = sorted(
            runs.values(), key=lambda r: (r["stage"], r["method"], str(r["setting"]), r["seed"])
        )
        return True

    def _take_journal(
        self, folder: Folder, path: Path, runs: dict[tuple[Any, ...], dict[str, Any]]
    ) -> None:
        """Add a run that goes on, or what its journal says beyond its record."""
        try:
            live = _going_on(read_journal(path))
        except (ValueError, TypeError, KeyError, OSError) as error:
            folder.problems.append(f"in {path.parent.name}: {type(error).__name__}: {error}")
            return
        probe = path.with_name(PROBE)
        if probe.exists() and (not probe.is_symlink() or _inside(probe, self.roots)):
            live["probe"] = probe
        for run in runs.values():
            same = all(run[key] == live[key] for key in ("method", "setting", "seed"))
            if same and run["stage"] == "runs":
                if live["state"] == "finished" or run["steps"] >= live["steps"]:
                    # The record has all points; the journal says how it ended.
                    extra = ("state", "reason", "probe", "of", "updated")
                    run |= {key: live[key] for key in extra if key in live}
                else:
                    run |= live  # the run was resumed and is further than its record
                return
        runs["live", str(path)] = live | {"stage": "runs"}


def read_probe(path: Path) -> dict[str, Any]:
    """A probe file, or a problem where it is none."""
    try:
        if path.stat().st_size > MOST_PROBE_BYTES:
            raise ValueError("it is too large")
        probe = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(probe, dict) or probe.get("format") != 1:
            raise ValueError("it has another format")
    except (OSError, ValueError, RecursionError) as error:
        return {"problem": f"{path.name} cannot be shown: {error}"}
    return probe


def _recorded(record: Record) -> dict[str, Any]:
    """What the page shows of a record."""
    details = record.details
    steps = record.curve[-1][0] if record.curve else None
    return _described(record.method) | {
        "experiment": record.experiment,
        "setting": record.setting,
        "seed": record.seed,
        "score": record.score,
        "seconds": record.seconds,
        "state": "finished",
        "steps": steps or 0,
        "updated": 0,
        "curve": thinned(record.curve, 2 * POINTS),
        "points": len(record.curve),
        "model_error": thinned(details.get("model_error") or (), 2 * POINTS),
        "settings": dict(record.settings),
        "revision": record.environment.revision,
        "cpu": record.environment.cpu,
        "versions": dict(record.environment.versions),
        **_times(details, steps or 0, record.seconds),
    }


def _going_on(told: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a journal."""
    steps, seconds = int(told.get("steps", 0)), float(told.get("seconds", 0.0))
    curve = thinned(told.get("curve") or ())
    decisions = told.get("decisions") or 0
    details = dict(told)
    if decisions:
        details["decision_ms"] = 1e3 * told["decision_seconds"] / decisions
    return _described(str(told["method"])) | {
        "experiment": told["experiment"],
        "setting": told["setting"],
        "seed": int(told["seed"]),
        "score": float(np.nanmean(curve[:, 1])) if len(curve) else None,
        "seconds": seconds,
        "state": str(told["state"]),
        "reason": str(told.get("reason", "")),
        "steps": steps,
        "of": told.get("of"),
        "updated": float(told["updated"]),
        "curve": curve,
        "points": len(curve),
        "model_error": thinned(told.get("model_error") or ()),
        "settings": told.get("settings") or {},
        **_times(details, steps, seconds),
    }


def _described(method: str) -> dict[str, Any]:
    style = style_of(method)
    dash = {"-": [], "--": [8, 4], "-.": [8, 3, 2, 3], ":": [2, 3]}
    known = dash.get(style.linestyle) if isinstance(style.linestyle, str) else None
    strokes = list(style.linestyle[1]) if known is None else known
    return {
        "method": method,
        "label": style.label,
        "color": to_hex(style.color),
        "dash": [2 * stroke for stroke in strokes] if known is None else strokes,
    }


def _times(details: Any, steps: float, seconds: float) -> dict[str, Any]:
    """The model's share of a run's time, and its latencies in milliseconds per step."""
    parts = {name: details.get(f"{name}_seconds") for name in ("update", "imagination")}
    known = {name: float(value) for name, value in parts.items() if value is not None}
    times: dict[str, Any] = {
        f"{name}_ms": 1e3 * value / steps for name, value in known.items() if steps
    }
    decision = details.get("decision_ms")
    if decision is not None:
        times["decision_ms"] = float(decision)
        known["decision"] = float(decision) * (details.get("decisions") or 0) / 1e3
    if known and seconds:
        times["model_share"] = min(sum(known.values()) / seconds, 1.0)
    return times


def _body(folder: Folder) -> bytes:
    """The JSON of a folder, with as many points as a screen can show."""
    told = folder.summary() | {"problems": folder.problems, "sweep": folder.sweep}
    told["runs"] = []
    lines = {name: _fitted([run[name] for run in folder.runs]) for name in ("curve", "model_error")}
    for k, run in enumerate(folder.runs):
        curves = {name: _columns(found[k]) for name, found in lines.items()}
        told["runs"].append(run | curves)
    return json.dumps(_plain(told), allow_nan=False, separators=(",", ":")).encode()


def _fitted(curves: Sequence[Any]) -> list[Any]:
    """Curves with few enough points between them."""
    places = np.unique(np.concatenate([c[:, 0] for c in curves])) if curves else np.arange(0)
    if len(places) <= SHOWN_POINTS:
        return list(curves)
    each = max(_LINE_LEAST, SHOWN_POINTS // len(curves))
    return [thinned(curve, each) for curve in curves]


def _columns(curve: Any) -> list[list[float]]:
    return [curve[:, 0].tolist(), curve[:, 1].tolist()]


def _plain(value: Any) -> Any:
    """As strict JSON has it; NaN and infinity become None."""
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders below a root with their files that are of interest."""
    wanted = {f"{stage}.jsonl" for stage in STAGES} | {LIVE, PROBE, SWEEP, "environments.json"}
    for looked, (here, below, names) in enumerate(os.walk(root)):
        deep = len(Path(here).relative_to(root).parts) >= DEPTH
        below[:] = [] if deep else sorted(n for n in below if not n.startswith(_SKIPPED))
        if looked >= MOST_FOLDERS:
            return
        found = sorted(wanted.intersection(names))
        if found and found != ["environments.json"]:
            yield Path(here), found


def _inside(path: Path, roots: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(root) for root in roots)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        about = path.stat()
        return about.st_mtime_ns, about.st_size, about.st_ino
    except OSError:
        return (0, 0, 0)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
