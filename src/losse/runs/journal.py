"""Journal of a run that goes on: a small file that says how far it is, for whoever watches.

A run writes `live.json` into its folder from time to time, and `probe.json` beside it if it has a
world model to look into. A sweep writes `progress.json`. Each is replaced as a whole. A journal
takes at most a fiftieth of the time of its run, and a run never fails because its journal cannot
be written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from losse.runs.record import Record
from losse.runs.runner import Display, Job
from losse.runs.workers import Failure
from losse.storage.jsonfile import write_json

LIVE = "live.json"
PROBE = "probe.json"
SWEEP = "progress.json"
POINTS = 1000
"""Points that a curve is reduced to unless the caller asks otherwise; a screen shows no more."""
EVERY_SECONDS = 2.0
"""Shortest time between two writes."""
SHARE = 0.02
"""Largest share of a run's time that its journal takes."""
_CURVES = ("curve", "model_error")
_TRACE = 4000  # characters of a traceback that are kept, the last ones


class Journal:
    """Journal of one run in its folder.

    Parameters
    ----------
    folder
        Folder of the run; None writes nothing.
    about
        What the run is: experiment, method, setting, seed, the number of steps ``of`` it.
    name
        Name of the file.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> about = {"experiment": "toy", "method": "losse", "setting": "a", "seed": 0, "of": 100}
    >>> with Journal(folder, about) as journal:
    ...     journal.write({"steps": 50, "curve": [(50, 1.0)]})
    >>> read = read_journal(folder / LIVE)
    >>> read["state"], read["steps"], read["curve"]
    ('finished', 50, [[50.0, 1.0]])
    """

    def __init__(self, folder: Path | None, about: Mapping[str, Any], name: str = LIVE) -> None:
        self._folder = folder
        self._name = name
        self._about = dict(about) | {"format": 1, "started": time.time()}
        self._reached: dict[str, Any] = {}
        self._due = 0.0

    def __enter__(self) -> Self:
        self._put("running")
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._put("finished")
        elif isinstance(error, Exception):
            self._put("failed", f"{type(error).__name__}: {error}")
        else:
            self._put("stopped", "interrupted")

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return self._folder is not None and time.monotonic() >= self._due

    def write(self, reached: Mapping[str, Any]) -> None:
        """Write how far the run is."""
        self._reached |= reached
        began = time.monotonic()
        self._put("running")
        now = time.monotonic()
        self._due = now + max(EVERY_SECONDS, (now - began) / SHARE)

    def write_probe(self, probe: Mapping[str, Any]) -> None:
        """Write what a look into the model of the run has found."""
        if self._folder is not None:
            with suppress(OSError):
                write_json(self._folder / PROBE, probe)

    def _put(self, state: str, reason: str = "") -> None:
        if self._folder is None:
            return
        told = self._about | self._reached | {"state": state, "updated": time.time()}
        told |= {name: thinned(told[name]) for name in _CURVES if name in told}
        with suppress(OSError):
            write_json(self._folder / self._name, told | ({"reason": reason} if reason else {}))


class SweepJournal:
    """Journal of the runs of an experiment: a `Display` that also tells another one.

    Parameters
    ----------
    folder
        Folder of the experiment.
    experiment
        Its name.
    display
        Is told of everything, too.
    """

    def __init__(self, folder: Path, experiment: str, display: Display) -> None:
        self._display = display
        self._failures: list[dict[str, str]] = []
        self._latest = ""
        self._journal = Journal(folder, {"experiment": experiment}, SWEEP)
        self._stage, self._began = "", time.time()
        self._before = self._done = self._total = 0

    def __enter__(self) -> Self:
        self._journal.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._write()
        self._journal.__exit__(*error)

    def stage(self, name: str, jobs: Sequence[Job], done: int) -> None:
        """A stage begins: `done` runs have records already, `jobs` hold those that are left."""
        self._display.stage(name, jobs, done)
        self._began, self._before = time.time(), done
        self._done = done
        self._total = done + sum(len(job.runs) for job in jobs)
        self._stage = name
        self._write()

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """The runs of a job are written."""
        self._display.finished(job, records)
        self._done += len(job.runs)
        self._latest = str(job)
        if self._journal.due:
            self._write()

    def failed(self, job: Job, failure: Failure) -> None:
        """The runs of a job have failed."""
        self._display.failed(job, failure)
        told = {"run": str(job), "reason": failure.reason, "trace": failure.trace[-_TRACE:]}
        self._failures.append(told)
        self._write()

    def _write(self) -> None:
        tried = self._done - self._before + len(self._failures)
        spent = time.time() - self._began
        left = self._total - self._done - len(self._failures)
        self._journal.write(
            {
                "stage": self._stage,
                "done": self._done,
                "total": self._total,
                "failures": self._failures,
                "latest": self._latest,
                "seconds_left": spent / tried * left if tried else None,
            }
        )


def read_journal(path: Path) -> dict[str, Any]:
    """The journal in a file; raises ValueError if it is none, FileNotFoundError without one."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a journal: {error}") from error
    if not isinstance(told, dict) or not isinstance(told.get("experiment"), str):
        raise ValueError(f"{path} is not a journal: it names no experiment")
    return told


def thinned(
    curve: Sequence[Sequence[float]] | npt.NDArray[Any], points: int = POINTS
) -> npt.NDArray[np.float64]:
    """Reduce a curve to at most so many of its points, (n, 2).

    The curve is cut into pieces of equally many points. Of each the lowest and the highest are
    kept, so an outlier stays visible; the first point and the last are kept, too. NaN counts as
    no value, and a piece of nothing else keeps its first.

    >>> thinned([(0, 1.0), (1, 5.0), (2, 0.0), (3, 1.0), (4, 2.0), (5, 2.5)], 4).tolist()
    [[0.0, 1.0], [1.0, 5.0], [2.0, 0.0], [5.0, 2.5]]
    """
    rows = np.asarray(curve, dtype=np.float64).reshape(-1, 2)
    n = len(rows)
    if n <= max(points, 2):
        return rows
    size = -(-(n - 2) // max((points - 2) // 2, 1))
    inner = rows[1:-1, 1]
    padded = np.full(-(-len(inner) // size) * size, np.nan)
    padded[: len(inner)] = inner
    pieces = padded.reshape(-1, size)
    first = np.arange(len(pieces)) * size + 1
    lowest = first + np.argmin(np.where(np.isnan(pieces), np.inf, pieces), axis=1)
    highest = first + np.argmax(np.where(np.isnan(pieces), -np.inf, pieces), axis=1)
    return rows[np.unique(np.concatenate([[0], lowest, highest, [n - 1]]))]
