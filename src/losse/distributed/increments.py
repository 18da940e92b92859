"""Increments of a fleet's world model, and the ledger by which each counts once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Header(NamedTuple):
    """Name of an increment: what a worker has learned between two syncs."""

    worker: int
    incarnation: int
    """How often the worker has been started, from 0."""
    sequence: int
    """Number of the increment within the incarnation, from 0."""
    n_transitions: int

    def __str__(self) -> str:
        return f"increment {self.sequence} of worker {self.worker} (start {self.incarnation})"


class Ledger:
    """Which increments count: of each worker's present incarnation the next one, and no other.

    An increment that is counted was counted in the right order, and is refused from then on. So is
    all that an earlier incarnation may still send: its worker was taken for dead, and begins anew.

    Attributes
    ----------
    committed
        Transitions that count, by worker and incarnation. They are the first that it saw.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.begin(worker=7)
    0
    >>> increment = Header(7, 0, sequence=0, n_transitions=50)
    >>> ledger.commit([increment])
    >>> ledger.accepts(increment)  # not twice
    False
    >>> ledger.begin(worker=7)  # it died
    1
    >>> ledger.accepts(Header(7, 0, sequence=1, n_transitions=50))
    False
    >>> ledger.committed
    {(7, 0): 50}
    """

    def __init__(self) -> None:
        self.committed: dict[tuple[int, int], int] = {}
        self._present: dict[int, int] = {}  # incarnation
        self._next: dict[int, int] = {}  # sequence number

    def begin(self, worker: int) -> int:
        """Number of a worker's new incarnation; what comes from earlier ones is void."""
        incarnation = self._present.get(worker, -1) + 1
        self._present[worker], self._next[worker] = incarnation, 0
        return incarnation

    def end(self, worker: int) -> None:
        """Accept nothing more from a worker."""
        self._next.pop(worker, None)

    def accepts(self, header: Header) -> bool:
        """Whether an increment is the next that counts."""
        expected = self._present.get(header.worker), self._next.get(header.worker)
        return (header.incarnation, header.sequence) == expected

    def commit(self, headers: Iterable[Header]) -> None:
        """Note that increments, one of each worker at most, have been counted: all, or none."""
        headers = list(headers)
        for header in headers:
            if not self.accepts(header):
                raise ValueError(f"{header} is not the next one, and must not be counted.")
        for header in headers:
            key = header.worker, header.incarnation
            self.committed[key] = self.committed.get(key, 0) + header.n_transitions
            self._next[header.worker] += 1
