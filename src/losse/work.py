"""Work in units: generators that yield the cost of each unit, so that it can pause in between.

A cost is a number of floating-point operations, as many as a matrix product would do in the same
time; it depends on sizes alone, never on a clock. So work that pauses after a certain cost pauses
at the same place in every run.
"""

from collections.abc import Generator, Iterator
from typing import TypeVar

Result = TypeVar("Result")
Work = Generator[float, None, Result]
"""Yields the cost of each unit when it is done, and returns the result."""

UNIT = 2e7
"""Cost that a unit should not exceed by much: a third of a millisecond or so."""


def finished(work: Work[Result]) -> Result:
    """The result of work that is done at once.

    >>> def doubled(x):
    ...     yield 1.0
    ...     return 2 * x
    >>> finished(doubled(4))
    8
    """
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def blocks(n: int, cost: float, least: int = 1) -> Iterator[slice]:
    """Slices of n rows, each row at some cost, that are a unit each.

    >>> list(blocks(5, UNIT / 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(least, int(UNIT / cost))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
