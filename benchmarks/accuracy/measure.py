"""Measurement of a contender on a stream: errors, time, memory and calibration.

Rows arrive in batches.  Each batch is predicted before it is learned (the prequential error), and
at checkpoints the test rows are predicted.  Errors are normalised: the mean squared error of each
output is divided by the variance of that output over the test rows, and averaged over the outputs
that vary at all.  A stream without test rows is normalised by the rows that are learned.  Parts of
what is predicted, such as the reward of transitions, can have errors of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.accuracy.contenders.contender import Contender, Doubting
from benchmarks.accuracy.streams.stream import Stream
from losse.typing import Array

BATCH = 25
LEAST_SPREAD = 1e-6  # an output that varies less is constant, up to rounding
CALIBRATION_ROWS = 2000  # intervals are dear
LEVELS = (0.8, 0.9, 0.95)

Part = Callable[[Array, Array], Array]
"""What inputs and targets, or predictions of these, say of one thing, (rows, width)."""


@dataclass
class Measured:
    """Everything that a record keeps.  Lists have one entry per checkpoint."""

    samples: list[int] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    """Error on the test rows; empty if there are none."""
    parts: dict[str, list[float]] = field(default_factory=dict)
    """Errors on the test rows of parts that vary, each by itself."""
    prequential: list[float] = field(default_factory=list)
    """Error of predictions ahead, over the rows since the checkpoint before."""
    seconds: list[float] = field(default_factory=list)
    """Processor time of all learning so far."""
    nbytes: list[int] = field(default_factory=list)
    tasks: list[tuple[int, list[float]]] = field(default_factory=list)
    """Rows learned, and the error on each task then."""
    calibration: dict[str, float] = field(default_factory=dict)
    """Share of the test targets within intervals of this probability, at the end."""

    @property
    def curve(self) -> list[tuple[int, float]]:
        """Rows learned, and the error on test rows, or of all predictions ahead without them."""
        if self.test:
            return list(zip(self.samples, self.test, strict=True))
        return list(zip(self.samples, running(self.samples, self.prequential), strict=True))


def measure(
    contender: Contender,
    stream: Stream,
    checkpoints: Sequence[int],
    parts: Mapping[str, Part] | None = None,
) -> Measured:
    """Let a contender learn a stream up to the last checkpoint; measure some parts apart."""
    has_tests = len(stream.X_test) > 0
    apart = [_Apart(name, part, stream) for name, part in (parts or {}).items() if has_tests]
    error = Error(stream.Y_test if has_tests else stream.Y)
    found, seconds = Measured(), 0.0
    ahead: list[Array] = []
    n = 0
    for checkpoint in checkpoints:
        while n < checkpoint:
            rows = slice(n, min(n + BATCH, checkpoint))
            if n > 0:
                ahead.append(contender.predict(stream.X[rows]) - stream.Y[rows])
            began = time.process_time()
            contender.learn(stream.X[rows], stream.Y[rows])
            seconds += time.process_time() - began
            n = rows.stop
        began = time.process_time()
        contender.refresh()
        seconds += time.process_time() - began

        found.samples.append(n)
        found.prequential.append(error(np.concatenate(ahead)))
        found.seconds.append(seconds)
        found.nbytes.append(contender.nbytes)
        ahead.clear()
        if has_tests:
            predicted = contender.predict(stream.X_test)
            wrong = predicted - stream.Y_test
            found.test.append(error(wrong))
            for part in apart:
                part.add_to(found.parts, predicted)
        if stream.n_tasks > 1:
            each = [error(wrong[stream.task_test == k]) for k in range(stream.n_tasks)]
            found.tasks.append((n, each))
    if has_tests and isinstance(contender, Doubting):
        some = sample_of_tests(stream, CALIBRATION_ROWS)
        found.calibration = calibration(contender, some.X_test, some.Y_test)
    return found


def running(samples: Sequence[int], errors: Sequence[float]) -> list[float]:
    """Means over all rows up to each checkpoint, of errors over the rows since the one before.

    >>> running([10, 40], [0.4, 0.2])
    [0.4, 0.25]
    """
    total = np.cumsum(np.diff(samples, prepend=0) * np.array(errors))
    return (total / np.array(samples)).tolist()


def sample_of_tests(stream: Stream, n: int | None) -> Stream:
    """The same stream with fewer test rows, drawn at random, for what is slow to predict."""
    if n is None:
        return stream
    some = np.random.default_rng(0).permutation(len(stream.X_test))[:n]
    return stream._replace(
        X_test=stream.X_test[some], Y_test=stream.Y_test[some], task_test=stream.task_test[some]
    )


class Error:
    """Normalised mean squared error, by the variance of some targets.

    >>> error = Error(np.array([[0.0, 5.0], [2.0, 5.0]]))  # the second output is constant
    >>> error(np.array([[1.0, 3.0], [1.0, 3.0]]))
    1.0
    """

    def __init__(self, targets: Array) -> None:
        spread = targets.std(axis=0)
        self._varies = spread > LEAST_SPREAD * (1 + np.abs(targets).max(axis=0))
        self._variance = spread[self._varies] ** 2

    @property
    def defined(self) -> bool:
        """Whether any output varies."""
        return bool(self._varies.any())

    def __call__(self, wrong: Array) -> float:
        """Error of rows of differences between predictions and targets."""
        return float(np.mean(np.mean(wrong[:, self._varies] ** 2, axis=0) / self._variance))


class _Apart:
    """The error of one part of what is predicted for the test rows of a stream."""

    def __init__(self, name: str, part: Part, stream: Stream) -> None:
        self._name, self._part, self._X = name, part, stream.X_test
        self._truth = part(stream.X_test, stream.Y_test)
        self._error = Error(self._truth)

    def add_to(self, errors: dict[str, list[float]], predicted: Array) -> None:
        """Append the error of predictions to the list of this part, if the part varies."""
        if self._error.defined:
            wrong = self._part(self._X, predicted) - self._truth
            errors.setdefault(self._name, []).append(self._error(wrong))


def calibration(contender: Doubting, X: Array, Y: Array) -> dict[str, float]:
    """Shares of the targets within intervals of the :data:`LEVELS`, over outputs that vary."""
    varies = Y.std(axis=0) > 0
    found = {}
    for level in LEVELS:
        low, high = contender.predict_interval(X, level)
        found[str(level)] = float(np.mean(((low <= Y) & (high >= Y))[:, varies]))
    return found


def largest_rises(
    tasks: Sequence[tuple[int, Sequence[float]]], ends: Sequence[int]
) -> tuple[float, float]:
    """Largest relative rises of the error on a finished task: what has been forgotten.

    The one is above the error when the task was finished, the other above the least since.

    >>> curve = [(10, [0.2, 1.0]), (15, [0.1, 0.5]), (20, [0.15, 0.3])]
    >>> above_end, above_least = largest_rises(curve, ends=[10, 20])
    >>> above_end, round(above_least, 2)
    (0.0, 0.5)
    """
    above_end, above_least = 0.0, 0.0
    for k, end in enumerate(ends):
        errors = np.array([each[k] for n, each in tasks if n >= end])
        above_end = max(above_end, float(np.max(errors / errors[0] - 1)))
        least = np.minimum.accumulate(errors)
        above_least = max(above_least, float(np.max(errors / least - 1)))
    return above_end, above_least
