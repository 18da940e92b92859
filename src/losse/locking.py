"""`Guarded`: an object with a lock, which copies and pickles of it wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from threading import RLock
from typing import Any, Self


class Guarded:
    """An object that one thread at a time changes, reads or copies.

    Its methods hold `lock` while they change or read what it knows. A copy (shallow copies are
    deep ones, too, since two objects with two locks must not share anything) or a pickle is that of
    one moment: it never holds half of a change that another thread is making. A pickle is made of a
    copy, and so takes the memory of the object twice for a while.

    Examples
    --------
    >>> class Counter(Guarded):
    ...     def __init__(self):
    ...         self.counts = [0, 0]
    ...     def count(self):
    ...         with self.lock:
    ...             self.counts[0] += 1
    ...             self.counts[1] += 1
    >>> counter = Counter()
    >>> counter.count()
    >>> other = deepcopy(counter)
    >>> other.counts, other.lock is counter.lock
    ([1, 1], False)
    """

    @property
    def lock(self) -> RLock:
        """Held by whoever changes or reads the object: a lock that its owner may take again."""
        lock: RLock = self.__dict__.setdefault("_lock", RLock())
        return lock

    def __getstate__(self) -> dict[str, Any]:
        return self._copied({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cls = type(self)
        copied = cls.__new__(cls)
        memo[id(self)] = copied
        copied.__dict__.update(self._copied(memo))
        return copied

    def _copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        with self.lock:
            own = {name: value for name, value in vars(self).items() if name != "_lock"}
            return deepcopy(own, memo)


@contextmanager
def locked(*objects: Guarded) -> Iterator[None]:
    """Hold the locks of several objects, in an order in which no two threads block each other."""
    with ExitStack() as stack:
        for each in sorted(objects, key=id):
            stack.enter_context(each.lock)
        yield
