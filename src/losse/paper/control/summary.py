"""The interquartile mean of a method over all tasks, with its uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from losse.runs.record import Record

RESAMPLED = 2000


class Interval(NamedTuple):
    """An estimate and its 95 % bootstrap interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3g} ({self.low:.3g} to {self.high:.3g})"


def interquartile(records: Sequence[Record], envs: Sequence[str]) -> Interval | None:
    """The mean of the middle half of one method's scores, over tasks and seeds (rliable's).

    Seeds are resampled within each task. Those count that all tasks have; None unless they are more
    than one.
    """
    of_each = [{r.seed for r in records if r.setting == env} for env in envs]
    seeds = sorted(set.intersection(*of_each)) if of_each else []
    if len(seeds) < 2:
        return None
    from rliable import library, metrics

    by_run = {(record.seed, record.setting): record.score for record in records}
    scores = np.array([[by_run[seed, env] for env in envs] for seed in seeds])
    with warnings.catch_warnings(), _fixed_chances():
        warnings.simplefilter("ignore", FutureWarning)  # how rliable calls arch
        point, interval = library.get_interval_estimates(
            {"": scores},
            lambda sample: np.array([metrics.aggregate_iqm(sample)]),
            reps=RESAMPLED,
        )
    low, high = interval[""].reshape(-1)
    return Interval(float(point[""][0]), float(low), float(high))


@contextmanager
def _fixed_chances() -> Iterator[None]:
    """The same records give the same interval: rliable draws from NumPy's global generator."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
